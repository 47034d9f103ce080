#include "compiler/target/target.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

constexpr size_t kMaxTargetBytes = 4096;
constexpr int kMaxVectorBits = 65536;
constexpr int kMaxVectorRegisters = 1024;
constexpr int kMaxGroup = 1 << 16;
constexpr int64_t kMaxLocalBytes = int64_t{1} << 32;
constexpr int kMaxSubgroup = 1024;
constexpr int kMaxRegisters = 1 << 16;
constexpr int kMaxImage = 1 << 24;
constexpr int kMaxDriver = 1000;

// The fields that are whole numbers, in the order of the struct and the text.
struct CountField {
  const char* name;
  int64_t max;
  int Target::*narrow;  // one of the two
  int64_t Target::*wide;
};
constexpr CountField kCountFields[] = {
    {"vector_bits", kMaxVectorBits, &Target::vector_bits, nullptr},
    {"vector_registers", kMaxVectorRegisters, &Target::vector_registers,
     nullptr},
    {"max_group", kMaxGroup, &Target::max_group, nullptr},
    {"local_bytes", kMaxLocalBytes, nullptr, &Target::local_bytes},
    {"subgroup", kMaxSubgroup, &Target::subgroup, nullptr},
    {"max_registers", kMaxRegisters, &Target::max_registers, nullptr},
    {"image_width", kMaxImage, &Target::image_width, nullptr},
    {"image_height", kMaxImage, &Target::image_height, nullptr},
    {"driver", kMaxDriver, &Target::driver, nullptr},
};

bool IsWord(std::string_view text, std::string_view extra) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(c) || extra.find(c) != std::string_view::npos;
  });
}

absl::Status Bad(std::string_view field, std::string_view value,
                 std::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("target: ", std::string(field), " is '", std::string(value),
                   "'; it must be ", std::string(wanted)));
}

absl::StatusOr<int64_t> ParseCount(const std::string& field,
                                   const std::string& value, int64_t max) {
  int64_t number = 0;
  // 0 would be read as not said.
  if (!absl::SimpleAtoi(value, &number) || number < 1 || number > max) {
    return Bad(field, value,
               absl::StrCat("a whole number from 1 to ", max,
                            "; leave it out for the usual"));
  }
  return number;
}

// "+avx512f+avx512vl-fma" -> sorted {"+avx512f", "+avx512vl", "-fma"}.
absl::StatusOr<std::vector<std::string>> ParseFeatures(
    const std::string& value) {
  std::set<std::string> features;
  size_t start = 0;
  while (start < value.size()) {
    const size_t end =
        std::min(value.find_first_of("+-", start + 1), value.size());
    const std::string feature = value.substr(start, end - start);
    if ((feature[0] != '+' && feature[0] != '-') ||
        !IsWord(feature.substr(1), "_.")) {
      return Bad("features", value, "+name or -name, one after the other");
    }
    features.insert(feature);
    start = end;
  }
  return std::vector<std::string>(features.begin(), features.end());
}

// "i8x4+i8x2x2x8", sorted.
absl::StatusOr<std::vector<std::string>> ParseProducts(
    const std::string& value) {
  std::set<std::string> forms;
  const std::vector<std::string> given = absl::StrSplit(value, '+');
  for (const std::string& form : given) {
    if (!ParseProductForm(form)) {
      return Bad("products", value,
                 "forms such as i8x4 or i8x2x2x8, joined by '+'");
    }
    forms.insert(form);
  }
  return std::vector<std::string>(forms.begin(), forms.end());
}

absl::Status SetField(const std::string& field, const std::string& value,
                      Target& target) {
  if (field == "triple" || field == "mcpu") {
    if (!IsWord(value, "-_.+")) {
      return Bad(field, value, "a name of letters, digits, '-', '_' and '.'");
    }
    (field == "triple" ? target.triple : target.mcpu) = value;
    return absl::OkStatus();
  }
  if (field == "features") {
    ASSIGN_OR_RETURN(target.features, ParseFeatures(value));
    return absl::OkStatus();
  }
  for (const CountField& count : kCountFields) {
    if (field != count.name) continue;
    ASSIGN_OR_RETURN(const int64_t number, ParseCount(field, value, count.max));
    if (count.narrow != nullptr) {
      target.*count.narrow = static_cast<int>(number);
    } else {
      target.*count.wide = number;
    }
    if (target.vector_bits % 8 != 0) {
      return Bad(field, value, "a multiple of 8");
    }
    return absl::OkStatus();
  }
  std::string known = "triple, mcpu, features";
  for (const CountField& count : kCountFields) {
    absl::StrAppend(&known, ", ", count.name);
  }
  if (field == "products") {
    ASSIGN_OR_RETURN(target.products, ParseProducts(value));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "target: unknown field '", field, "'; known are ", known, ", products"));
}

}  // namespace

std::string Target::ToString() const {
  std::string text = kind;
  if (!triple.empty()) absl::StrAppend(&text, ",triple=", triple);
  if (!mcpu.empty()) absl::StrAppend(&text, ",mcpu=", mcpu);
  if (!features.empty()) {
    absl::StrAppend(&text, ",features=", absl::StrJoin(features, ""));
  }
  for (const CountField& count : kCountFields) {
    const int64_t number =
        count.narrow != nullptr ? this->*count.narrow : this->*count.wide;
    if (number != 0) absl::StrAppend(&text, ",", count.name, "=", number);
  }
  if (!products.empty()) {
    absl::StrAppend(&text, ",products=", absl::StrJoin(products, "+"));
  }
  return text;
}

bool Target::Has(std::string_view name) const {
  return std::any_of(features.begin(), features.end(),
                     [&](const std::string& feature) {
                       return feature[0] == '+' && feature.substr(1) == name;
                     });
}

int Target::Lanes(int64_t bytes) const {
  if (bytes <= 0) return 1;
  return static_cast<int>(std::max<int64_t>(1, vector_bits / (8 * bytes)));
}

std::optional<ProductForm> ParseProductForm(std::string_view text) {
  constexpr int kMax = 1024;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), 'x');
  if (parts.size() != 2 && parts.size() != 4) return std::nullopt;
  ProductForm form;
  form.unsigned_a = parts[0][0] == 'u';
  const std::optional<DType> type =
      ParseTensorDType(parts[0].substr(form.unsigned_a ? 1 : 0));
  if (!type) return std::nullopt;
  form.type = *type;
  std::vector<int> numbers;
  for (size_t i = 1; i < parts.size(); ++i) {
    int number = 0;
    if (!absl::SimpleAtoi(parts[i], &number) || number < 1 || number > kMax) {
      return std::nullopt;
    }
    numbers.push_back(number);
  }
  form.depth = numbers.back();
  if (numbers.size() == 3) {
    form.rows = numbers[0];
    form.cols = numbers[1];
  }
  return form;
}

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  if (text.size() > kMaxTargetBytes) {
    return absl::InvalidArgumentError("target: the text is too long");
  }
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  Target target;
  target.kind = std::string(absl::StripAsciiWhitespace(parts[0]));
  if (!IsWord(target.kind, "_") || absl::ascii_isdigit(target.kind.front())) {
    return Bad("kind", target.kind,
               "a word such as cpu, as in 'cpu,triple=x86_64-linux-gnu,"
               "mcpu=znver4'");
  }
  std::set<std::string> seen;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<std::string, std::string> field = absl::StrSplit(
        absl::StripAsciiWhitespace(parts[i]), absl::MaxSplits('=', 1));
    if (!seen.insert(field.first).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: field '", field.first, "' is given twice"));
    }
    RETURN_IF_ERROR(SetField(field.first, field.second, target));
  }
  return target;
}

bool MultipliesByLane(const Target& target) {
  return target.triple.rfind("aarch64", 0) == 0;
}

std::string CpuDeviceClass(const Target& target, int cores) {
  const std::string model =
      !target.mcpu.empty()
          ? target.mcpu
          : std::string(target.triple.substr(0, target.triple.find('-')));
  return absl::StrCat(model.empty() ? target.kind : model, "-", cores, "c");
}

}  // namespace regatta

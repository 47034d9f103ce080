#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "compiler/expr/syntax.h"
#include "compiler/ops/op.h"

namespace regatta {
namespace {

absl::Status Bad(const OpParameter& parameter, const std::string& value,
                 const std::string& rule) {
  return absl::InvalidArgumentError(
      absl::StrCat(parameter.name, " is '", value, "'; it must be ", rule));
}

absl::StatusOr<std::string> CheckInteger(const OpParameter& parameter,
                                         const std::string& value) {
  const std::string digits =
      !value.empty() && value[0] == '-' ? value.substr(1) : value;
  if (digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    return Bad(parameter, value, "a whole number");
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < parameter.min ||
      number > parameter.max) {
    return absl::InvalidArgumentError(
        absl::StrCat(parameter.name, " is ", value, "; it must be from ",
                     parameter.min, " to ", parameter.max));
  }
  return absl::StrCat(number);
}

absl::StatusOr<std::string> CheckWord(const OpParameter& parameter,
                                      const std::string& value) {
  const auto& words = parameter.words;
  if (std::find(words.begin(), words.end(), value) != words.end()) {
    return value;
  }
  return Bad(parameter, value,
             absl::StrCat("one of ", absl::StrJoin(words, ", ")));
}

absl::StatusOr<std::string> CheckReal(const OpParameter& parameter,
                                      const std::string& value) {
  double number = 0;
  if (!ParseDecimal(value, &number) ||
      number < static_cast<double>(parameter.min) ||
      number > static_cast<double>(parameter.max)) {
    return Bad(
        parameter, value,
        absl::StrCat("a number from ", parameter.min, " to ", parameter.max));
  }
  char text[40];
  const std::to_chars_result end = std::to_chars(text, std::end(text), number);
  return std::string(text, end.ptr);
}

// The parts of a list, each in its one spelling.
template <typename Check>
absl::StatusOr<std::string> CheckList(const OpParameter& parameter,
                                      const std::string& value, char joint,
                                      const Check& check) {
  std::vector<std::string> parts = absl::StrSplit(value, joint);
  if (parts.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat(parameter.name, " has ", parts.size(), " parts; at most ",
                     kMaxRank, " are taken"));
  }
  for (std::string& part : parts) {
    ASSIGN_OR_RETURN(part, check(parameter, part));
  }
  return absl::StrJoin(parts, std::string(1, joint));
}

}  // namespace

absl::StatusOr<std::string> CheckArgument(const OpParameter& parameter,
                                          const std::string& value) {
  switch (parameter.kind) {
    case OpParameter::Kind::kInteger:
      return CheckInteger(parameter, value);
    case OpParameter::Kind::kWord:
      return CheckWord(parameter, value);
    case OpParameter::Kind::kReal:
      return CheckReal(parameter, value);
    case OpParameter::Kind::kIntegers:
      return CheckList(parameter, value, 'x', CheckInteger);
    case OpParameter::Kind::kWords:
      return CheckList(parameter, value, '+', CheckWord);
  }
  CHECK(false) << "parameter kind " << static_cast<int>(parameter.kind);
}

int64_t OpArguments::Int(std::string_view name) const {
  int64_t value = 0;
  CHECK(absl::SimpleAtoi(Word(name), &value)) << name << " is no integer";
  return value;
}

const std::string& OpArguments::Word(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  CHECK(it != values_.end()) << "no parameter " << name;
  return it->second;
}

std::vector<int64_t> OpArguments::Ints(std::string_view name) const {
  std::vector<int64_t> values;
  for (const absl::string_view part : absl::StrSplit(Word(name), 'x')) {
    int64_t value = 0;
    CHECK(absl::SimpleAtoi(part, &value)) << name << " is no list";
    values.push_back(value);
  }
  return values;
}

std::vector<std::string> OpArguments::Words(std::string_view name) const {
  return absl::StrSplit(Word(name), '+');
}

}  // namespace regatta

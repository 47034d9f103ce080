#include "compiler/space/schedule_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

bool IsNameChar(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
}

bool IsValueChar(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return pos_ == text_.size(); }
  bool At(char c) const { return !AtEnd() && text_[pos_] == c; }
  bool Accept(char c) {
    if (!At(c)) return false;
    ++pos_;
    return true;
  }

  absl::Status Expected(std::string_view what) const {
    const std::string_view rest = text_.substr(pos_, 20);
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: at character ", pos_ + 1,
                     AtEnd() ? std::string(" (the end)")
                             : absl::StrCat(", near '", std::string(rest), "'"),
                     ": expected ", std::string(what)));
  }

  absl::StatusOr<std::string> Name(std::string_view what) {
    if (AtEnd() || !absl::ascii_islower(text_[pos_])) return Expected(what);
    return Run(IsNameChar);
  }
  absl::StatusOr<std::string> Value() {
    if (AtEnd() || !IsValueChar(text_[pos_])) return Expected("a knob's value");
    return Run(IsValueChar);
  }

 private:
  std::string Run(bool (*accept)(char)) {
    const size_t start = pos_;
    while (!AtEnd() && accept(text_[pos_])) ++pos_;
    return std::string(text_.substr(start, pos_ - start));
  }

  std::string_view text_;
  size_t pos_ = 0;
};

absl::StatusOr<PartText> ParsePart(Reader& in) {
  PartText part;
  ASSIGN_OR_RETURN(part.label, in.Name("a part's name, such as contraction"));
  if (in.Accept(':')) {
    ASSIGN_OR_RETURN(const std::string count, in.Value());
    absl::StrAppend(&part.label, ":", count);
  }
  if (!in.Accept('{')) return in.Expected("'{' after the part's name");
  if (in.Accept('}')) return part;
  do {
    ASSIGN_OR_RETURN(std::string name, in.Name("a knob's name"));
    if (!in.Accept('=')) return in.Expected("'=' after the knob's name");
    ASSIGN_OR_RETURN(std::string value, in.Value());
    for (const auto& [other, unused] : part.knobs) {
      if (other == name) {
        return absl::InvalidArgumentError(absl::StrCat(
            "schedule: part ", part.label, ": knob ", name, " is given twice"));
      }
    }
    part.knobs.emplace_back(std::move(name), std::move(value));
  } while (in.Accept(','));
  if (!in.Accept('}')) return in.Expected("',' or '}' after a knob");
  return part;
}

}  // namespace

absl::StatusOr<std::vector<PartText>> ParseScheduleText(std::string_view text) {
  if (text.size() > kMaxScheduleBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: ", text.size(), " bytes; at most ",
                     kMaxScheduleBytes, " are read"));
  }
  Reader in(text);
  std::vector<PartText> parts;
  do {
    ASSIGN_OR_RETURN(PartText part, ParsePart(in));
    parts.push_back(std::move(part));
  } while (in.Accept('+'));
  if (!in.AtEnd()) return in.Expected("'+' or the end after a part");
  return parts;
}

std::string PrintScheduleText(const std::vector<PartText>& parts) {
  std::string text;
  for (const PartText& part : parts) {
    absl::StrAppend(&text, text.empty() ? "" : "+", part.label, "{");
    const char* separator = "";
    for (const auto& [name, value] : part.knobs) {
      absl::StrAppend(&text, separator, name, "=", value);
      separator = ",";
    }
    absl::StrAppend(&text, "}");
  }
  return text;
}

}  // namespace regatta

#include "compiler/expr/token_reader.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace regatta {

absl::Status TokenReader::Expected(std::string_view what) const {
  return Error(Peek(), absl::StrCat("expected ", std::string(what)));
}

absl::Status TokenReader::Expect(std::string_view symbol,
                                 std::string_view context) {
  if (Accept(symbol)) return absl::OkStatus();
  return Expected(
      absl::StrCat("'", std::string(symbol), "' ", std::string(context)));
}

absl::StatusOr<int64_t> TokenReader::TakePositive(
    absl::FunctionRef<std::string()> what, int64_t max) {
  const Token first = Peek();
  const bool negative = Accept("-");
  const Token token = Peek();
  if (token.kind != Token::Kind::kNumber) {
    return Error(first, absl::StrCat("expected a whole number for ", what()));
  }
  Take();
  const std::string digits(token.text);
  if (digits.find_first_not_of("0123456789") != std::string::npos) {
    return Error(first, absl::StrCat(what(), " is ", digits,
                                     "; it must be a whole number"));
  }
  int64_t value = 0;
  const bool fits = absl::SimpleAtoi(digits, &value) && value <= max;
  if (negative || !fits || value < 1) {
    return Error(first, absl::StrCat(what(), " is ", negative ? "-" : "",
                                     digits, "; it must be from 1 to ", max));
  }
  return value;
}

}  // namespace regatta

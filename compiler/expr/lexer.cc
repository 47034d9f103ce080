#include "compiler/expr/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kNearBytes = 12;

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Length of the number that starts at `offset`; the parser checks its value.
size_t NumberLength(std::string_view text, size_t offset) {
  size_t end = offset;
  const auto digits = [&] {
    while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  };
  digits();
  if (end < text.size() && text[end] == '.') {
    ++end;
    digits();
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const size_t mantissa_end = end++;
    if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
    const size_t exponent = end;
    digits();
    if (end == exponent) end = mantissa_end;
  }
  return end - offset;
}

size_t SymbolLength(std::string_view text, size_t offset) {
  const std::string_view two = text.substr(offset, 2);
  if (two == "<=" || two == ">=" || two == "==") return 2;
  return std::string_view("+-*/%()[],;=<>").find(text[offset]) ==
                 std::string_view::npos
             ? 0
             : 1;
}

}  // namespace

std::string Excerpt(std::string_view text, size_t limit) {
  return absl::CHexEscape(
      std::string(text.substr(0, std::min(limit, text.size()))));
}

absl::Status ErrorAt(std::string_view text, size_t offset,
                     std::string_view message) {
  std::string where;
  if (offset >= text.size()) {
    where = "at the end of the text";
  } else {
    where = absl::StrCat("at character ", offset + 1, ", near '",
                         Excerpt(text.substr(offset), kNearBytes), "'");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", std::string(message)));
}

absl::StatusOr<std::vector<Token>> Lex(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", text.size(),
                                                   " characters; at most ",
                                                   kMaxTextBytes, " are read"));
  }
  std::vector<Token> tokens;
  tokens.reserve(text.size() / 2 + 2);
  size_t offset = 0;
  while (offset < text.size()) {
    const char c = text[offset];
    if (absl::ascii_isspace(c)) {
      ++offset;
      continue;
    }
    Token token{.offset = offset};
    size_t length = 0;
    if (IsNameStart(c)) {
      token.kind = Token::Kind::kName;
      while (offset + length < text.size() &&
             IsNamePart(text[offset + length])) {
        ++length;
      }
      if (length > kMaxNameBytes) {
        return ErrorAt(
            text, offset,
            absl::StrCat("a name has at most ", kMaxNameBytes, " characters"));
      }
    } else if (absl::ascii_isdigit(c) || c == '.') {
      token.kind = Token::Kind::kNumber;
      length = NumberLength(text, offset);
    } else {
      token.kind = Token::Kind::kSymbol;
      length = SymbolLength(text, offset);
    }
    if (length == 0) {
      return ErrorAt(text, offset, "this character has no meaning here");
    }
    token.text = text.substr(offset, length);
    offset += length;
    tokens.push_back(token);
  }
  if (tokens.empty()) {
    return absl::InvalidArgumentError("the text is empty");
  }
  tokens.push_back({.kind = Token::Kind::kEnd, .offset = text.size()});
  return tokens;
}

}  // namespace regatta

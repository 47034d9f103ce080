#include "compiler/ptxsim/lexer.h"

#include <bit>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace regatta::ptxsim {
namespace {

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '$';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (true) {
      RETURN_IF_ERROR(SkipBlank());
      if (at_ >= source_.size()) break;
      RETURN_IF_ERROR(Next());
    }
    tokens_.push_back({.kind = Token::Kind::kEnd, .line = line_});
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("PTX line ", line_, ": ", ToAbsl(what)));
  }

  absl::Status SkipBlank() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\0') {
        // The text of NVRTC ends with a zero byte, which callers may leave in.
        ++at_;
      } else if (c == '#' || (c == '/' && Peek(1) == '/')) {
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
      } else if (c == '/' && Peek(1) == '*') {
        const size_t end = source_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return Error("comment without end");
        for (; at_ < end + 2; ++at_) line_ += source_[at_] == '\n';
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  void Push(Token::Kind kind, size_t end) {
    tokens_.push_back(
        {.kind = kind, .line = line_, .text = source_.substr(at_, end - at_)});
    at_ = end;
  }

  absl::Status Next() {
    const char c = source_[at_];
    size_t end = at_ + 1;
    if (absl::ascii_isdigit(c)) return Number();
    if (c == '%' || IsNameCharacter(c)) {
      while (end < source_.size() && IsNameCharacter(source_[end])) ++end;
      if (end == at_ + 1 && c == '%') return Error("% without a name");
      Push(Token::Kind::kIdentifier, end);
    } else if (c == '.') {
      while (end < source_.size() &&
             (IsNameCharacter(source_[end]) ||
              (source_[end] == ':' && end + 1 < source_.size() &&
               source_[end + 1] == ':') ||
              (source_[end] == ':' && source_[end - 1] == ':'))) {
        ++end;
      }
      if (end == at_ + 1) return Error("a dot without a name");
      Push(Token::Kind::kDirective, end);
    } else if (c == '"') {
      end = source_.find('"', at_ + 1);
      if (end == std::string_view::npos) return Error("string without end");
      const size_t lines = source_.substr(at_, end - at_).find('\n');
      if (lines != std::string_view::npos) return Error("string without end");
      ++at_;
      Push(Token::Kind::kString, end);
      ++at_;
    } else if (std::string_view("{}()[]<>,;:=+-!|@").find(c) !=
               std::string_view::npos) {
      Push(Token::Kind::kPunctuation, end);
    } else {
      return Error(absl::StrCat("character code ",
                                static_cast<int>(static_cast<unsigned char>(c)),
                                " has no place in PTX"));
    }
    return absl::OkStatus();
  }

  absl::Status Number() {
    size_t end = at_;
    while (
        end < source_.size() &&
        (IsNameCharacter(source_[end]) || source_[end] == '.' ||
         ((source_[end] == '+' || source_[end] == '-') && IsExponent(end)))) {
      ++end;
    }
    const std::string_view text = source_.substr(at_, end - at_);
    Token token = {.kind = Token::Kind::kInteger, .line = line_, .text = text};
    if (!Value(text, token)) {
      return Error(absl::StrCat("'", token.Shown(), "' is no number"));
    }
    tokens_.push_back(token);
    at_ = end;
    return absl::OkStatus();
  }

  // Whether the sign at `at` belongs to the exponent of a decimal number.
  bool IsExponent(size_t at) const {
    return at > at_ && (source_[at - 1] == 'e' || source_[at - 1] == 'E') &&
           source_.substr(at_, at - at_).find('.') != std::string_view::npos;
  }

  static bool Integer(std::string_view digits, int base, uint64_t& value) {
    if (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) {
      digits.remove_suffix(1);
    }
    const auto [end, error] = std::from_chars(
        digits.data(), digits.data() + digits.size(), value, base);
    return error == std::errc() && end == digits.data() + digits.size() &&
           !digits.empty();
  }

  static bool Value(std::string_view text, Token& token) {
    const char second =
        text.size() > 1 && text[0] == '0' ? absl::ascii_tolower(text[1]) : '\0';
    const std::string_view rest = text.substr(std::min<size_t>(2, text.size()));
    if (second == 'f') {
      token.kind = Token::Kind::kFloat32;
      return rest.size() == 8 && Integer(rest, 16, token.integer);
    }
    if (second == 'd') {
      token.kind = Token::Kind::kFloat;
      if (rest.size() != 16 || !Integer(rest, 16, token.integer)) return false;
      token.real = std::bit_cast<double>(token.integer);
      return true;
    }
    if (second == 'x') return Integer(rest, 16, token.integer);
    if (second == 'b') return Integer(rest, 2, token.integer);
    if (text.find('.') != std::string_view::npos) {
      token.kind = Token::Kind::kFloat;
      return absl::SimpleAtod(ToAbsl(text), &token.real);
    }
    const bool octal = text.size() > 1 && text[0] == '0' && second != 'u';
    return Integer(text, octal ? 8 : 10, token.integer);
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) {
  return Lexer(source).Run();
}

}  // namespace regatta::ptxsim

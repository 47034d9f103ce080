// Words and symbols of the expression text, each with its position, so that
// every message can say where.
#ifndef REGATTA_COMPILER_EXPR_LEXER_H_
#define REGATTA_COMPILER_EXPR_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

// Longest text that is read at all. An operator of a few lines has a few
// hundred characters; this bounds what a hostile text can cost.
inline constexpr size_t kMaxTextBytes = 64 << 10;

struct Token {
  enum class Kind {
    kName,    // [A-Za-z_][A-Za-z0-9_]*
    kNumber,  // 12, 0.5, 1e-5
    kSymbol,  // one of + - * / % ( ) [ ] , ; = < > <= >= ==
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string_view text;  // points into the lexed text
  size_t offset = 0;      // bytes from its start
};

// Ends with a kEnd token. InvalidArgument for a text that is empty, too long or
// holds a character that belongs to no token. REQUIRES: `text` outlives the
// tokens.
absl::StatusOr<std::vector<Token>> Lex(std::string_view text);

// InvalidArgument "at character 17, near '* B[q': MESSAGE"; characters count
// from 1.
absl::Status ErrorAt(std::string_view text, size_t offset,
                     std::string_view message);

// `text` cut to `limit` bytes and safe to print: other than printable ASCII is
// escaped.
std::string Excerpt(std::string_view text, size_t limit);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_LEXER_H_

// PTX text as tokens. Comments and preprocessor lines vanish.
#ifndef REGATTA_COMPILER_PTXSIM_LEXER_H_
#define REGATTA_COMPILER_PTXSIM_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta::ptxsim {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kIdentifier,  // mov, %r1, $L__BB0_2, name
    kDirective,   // ".reg", ".shared::cta": the dot and what follows it
    kInteger,     // `integer`
    kFloat,       // 1.5 or 0d...: `real`
    kFloat32,     // 0f...: the bits in `integer`
    kString,      // "..." without its quotes
    kPunctuation  // one character, in `text`
  };
  Kind kind = Kind::kEnd;
  int line = 0;           // from 1
  std::string_view text;  // a view into the source
  uint64_t integer = 0;
  double real = 0;

  // The text for a message, no more than a line of it.
  std::string Shown() const { return std::string(text.substr(0, 40)); }

  bool Is(std::string_view what) const {
    return kind != Kind::kString && text == what;
  }
};

// The tokens of `source` and one kEnd. The tokens view `source`, which must
// outlive them. InvalidArgument, with the line, for a character or number that
// PTX does not have.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_LEXER_H_

// A cursor over tokens that turns "expected X" into a message with a position.
#ifndef REGATTA_COMPILER_EXPR_TOKEN_READER_H_
#define REGATTA_COMPILER_EXPR_TOKEN_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/expr/lexer.h"

namespace regatta {

class TokenReader {
 public:
  // REQUIRES: `tokens` ends with kEnd; `text` is what they were lexed from.
  TokenReader(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  // The token `ahead` places further; the last one for ever after it.
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool At(std::string_view symbol_or_word, size_t ahead = 0) const {
    const Token& token = Peek(ahead);
    return token.kind != Token::Kind::kEnd && token.text == symbol_or_word;
  }
  bool AtName(size_t ahead = 0) const {
    return Peek(ahead).kind == Token::Kind::kName;
  }
  Token Take() {
    const Token token = Peek();
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  // Takes the symbol or word when it is next.
  bool Accept(std::string_view symbol_or_word) {
    if (!At(symbol_or_word)) return false;
    Take();
    return true;
  }
  absl::Status Expect(std::string_view symbol, std::string_view context);
  // "expected WHAT" at the next token.
  absl::Status Expected(std::string_view what) const;
  absl::Status Error(const Token& token, std::string_view message) const {
    return ErrorAt(text_, token.offset, message);
  }
  // A whole number of 1 .. `max`, with a leading minus read as what it is.
  // `what` names it in an error.
  absl::StatusOr<int64_t> TakePositive(absl::FunctionRef<std::string()> what,
                                       int64_t max);

 private:
  std::string_view text_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_TOKEN_READER_H_

// Walks over tokens; what both halves of the parser share.
#ifndef REGATTA_COMPILER_PTXSIM_TOKEN_CURSOR_H_
#define REGATTA_COMPILER_PTXSIM_TOKEN_CURSOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ptxsim/lexer.h"
#include "compiler/ptxsim/syntax.h"

namespace regatta::ptxsim {

class TokenCursor {
 public:
  // REQUIRES: `tokens` ends with kEnd and outlives the cursor.
  explicit TokenCursor(const std::vector<Token>& tokens) : tokens_(tokens) {}

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& Take() {
    const Token& token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }
  // Takes the next token when it is `text`.
  bool TakeIf(std::string_view text) {
    if (!Peek().Is(text)) return false;
    Take();
    return true;
  }
  absl::Status Expect(std::string_view text);
  absl::StatusOr<std::string> Identifier(std::string_view what);
  // A number that is not negative and at most `limit`.
  absl::StatusOr<uint64_t> Count(std::string_view what, uint64_t limit);
  // InvalidArgument with the line of the next token.
  absl::Status Error(std::string_view message) const;

  // One variable after its state space: [.align N] .type name [N][M] [= init].
  // `space` decides what is allowed; parameters take .ptr too.
  absl::StatusOr<Variable> ParseVariable(Space space, bool external);

 private:
  absl::Status ParseInitial(Variable& variable);
  absl::Status ParseInitialValue(Variable& variable);

  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  uint64_t variable_bytes_ = 0;  // of all variables so far
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_TOKEN_CURSOR_H_

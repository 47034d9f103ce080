// Right-hand sides: the scalar expression of one stage.
#ifndef REGATTA_COMPILER_EXPR_VALUE_PARSER_H_
#define REGATTA_COMPILER_EXPR_VALUE_PARSER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "compiler/expr/syntax.h"
#include "compiler/expr/token_reader.h"

namespace regatta {

// What names mean inside one stage; each returns an id or an error that says
// why the name stands for nothing here.
struct NameScope {
  std::function<absl::StatusOr<int>(const Token&)> index;
  std::function<absl::StatusOr<int>(const Token&)> tensor;
};

class ValueParser {
 public:
  // REQUIRES: both outlive the parser.
  ValueParser(TokenReader& in, const NameScope& scope)
      : in_(in), scope_(scope) {}

  absl::StatusOr<SyntaxPtr> Value();

 private:
  absl::StatusOr<SyntaxPtr> Sum();
  absl::StatusOr<SyntaxPtr> Product();
  absl::StatusOr<SyntaxPtr> Factor();
  absl::StatusOr<SyntaxPtr> Primary();
  absl::StatusOr<SyntaxPtr> Name();
  absl::StatusOr<SyntaxPtr> Call();
  absl::StatusOr<SyntaxPtr> Access();
  absl::StatusOr<SyntaxPtr> Pad();
  absl::StatusOr<double> Number(const Token& token);
  absl::StatusOr<double> SignedNumber();
  absl::StatusOr<Affine> Subscript();
  absl::StatusOr<SubscriptPart> Part();
  absl::StatusOr<int64_t> PartNumber();
  absl::StatusOr<Affine> SubscriptTerm();
  absl::StatusOr<Affine> SubscriptFactor();
  absl::Status CheckSubscript(const Affine& form, const Token& at);
  absl::StatusOr<SyntaxPtr> Finish(Syntax node);
  absl::StatusOr<SyntaxPtr> Binary(BinaryOp op, const Token& at, SyntaxPtr a,
                                   SyntaxPtr b);

  TokenReader& in_;
  const NameScope& scope_;
  int nesting_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_VALUE_PARSER_H_

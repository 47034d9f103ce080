#include "compiler/expr/value_parser.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/expr/words.h"

namespace regatta {
namespace {

constexpr const char* kTooDeep =
    "the expression is nested too deeply, or has too many operands in a row; "
    "split it into several stages";

constexpr const char* kTooLarge = "the numbers of this subscript are too large";

int64_t Magnitude(int64_t value) { return value < 0 ? -value : value; }

bool Fits(int64_t a, int64_t b) {
  return static_cast<__int128>(Magnitude(a)) * Magnitude(b) <=
         kMaxSubscriptConstant;
}

}  // namespace

// Every node passes here, so that nothing deeper than the bound exists.
absl::StatusOr<SyntaxPtr> ValueParser::Finish(Syntax node) {
  for (const SyntaxPtr& operand : node.operands) {
    node.depth = std::max(node.depth, operand->depth + 1);
  }
  if (node.depth > kMaxExpressionDepth) {
    return in_.Error({.offset = node.offset}, kTooDeep);
  }
  return std::make_shared<const Syntax>(std::move(node));
}

absl::StatusOr<SyntaxPtr> ValueParser::Binary(BinaryOp op, const Token& at,
                                              SyntaxPtr a, SyntaxPtr b) {
  return Finish({.kind = Expr::Kind::kBinary,
                 .offset = at.offset,
                 .binary = op,
                 .operands = {std::move(a), std::move(b)}});
}

absl::StatusOr<SyntaxPtr> ValueParser::Value() {
  if (nesting_ >= kMaxExpressionDepth) return in_.Error(in_.Peek(), kTooDeep);
  ++nesting_;
  const absl::Cleanup leave = [this] { --nesting_; };
  ASSIGN_OR_RETURN(SyntaxPtr left, Sum());
  const Token at = in_.Peek();
  // a > b is b < a: one way to say it keeps canonical forms equal.
  if (in_.Accept("<")) {
    ASSIGN_OR_RETURN(SyntaxPtr right, Sum());
    return Binary(BinaryOp::kLess, at, left, right);
  }
  if (in_.Accept("<=")) {
    ASSIGN_OR_RETURN(SyntaxPtr right, Sum());
    return Binary(BinaryOp::kLessEqual, at, left, right);
  }
  if (in_.Accept(">")) {
    ASSIGN_OR_RETURN(SyntaxPtr right, Sum());
    return Binary(BinaryOp::kLess, at, right, left);
  }
  if (in_.Accept(">=")) {
    ASSIGN_OR_RETURN(SyntaxPtr right, Sum());
    return Binary(BinaryOp::kLessEqual, at, right, left);
  }
  if (in_.Accept("==")) {
    ASSIGN_OR_RETURN(SyntaxPtr right, Sum());
    return Binary(BinaryOp::kEqual, at, left, right);
  }
  return left;
}

absl::StatusOr<SyntaxPtr> ValueParser::Sum() {
  ASSIGN_OR_RETURN(SyntaxPtr left, Product());
  while (in_.At("+") || in_.At("-")) {
    const Token at = in_.Take();
    ASSIGN_OR_RETURN(SyntaxPtr right, Product());
    ASSIGN_OR_RETURN(
        left, Binary(at.text == "+" ? BinaryOp::kAdd : BinaryOp::kSub, at, left,
                     right));
  }
  return left;
}

absl::StatusOr<SyntaxPtr> ValueParser::Product() {
  ASSIGN_OR_RETURN(SyntaxPtr left, Factor());
  while (in_.At("*") || in_.At("/")) {
    const Token at = in_.Take();
    ASSIGN_OR_RETURN(SyntaxPtr right, Factor());
    ASSIGN_OR_RETURN(
        left, Binary(at.text == "*" ? BinaryOp::kMul : BinaryOp::kDiv, at, left,
                     right));
  }
  return left;
}

absl::StatusOr<SyntaxPtr> ValueParser::Factor() {
  const Token at = in_.Peek();
  int minuses = 0;
  while (in_.Accept("-")) ++minuses;
  ASSIGN_OR_RETURN(SyntaxPtr value, Primary());
  if (minuses > 0 && value->kind == Expr::Kind::kConst) {
    Syntax negated = *value;
    if (minuses % 2 == 1) negated.number = -negated.number;
    negated.offset = at.offset;
    return Finish(std::move(negated));
  }
  for (; minuses > 0; --minuses) {
    ASSIGN_OR_RETURN(value, Finish({.kind = Expr::Kind::kUnary,
                                    .offset = at.offset,
                                    .unary = UnaryOp::kNeg,
                                    .operands = {value}}));
  }
  return value;
}

absl::StatusOr<SyntaxPtr> ValueParser::Primary() {
  const Token token = in_.Peek();
  if (in_.Accept("(")) {
    ASSIGN_OR_RETURN(SyntaxPtr inner, Value());
    RETURN_IF_ERROR(in_.Expect(")", "to close the parenthesis"));
    return inner;
  }
  if (token.kind == Token::Kind::kNumber || in_.At("inf")) {
    in_.Take();
    ASSIGN_OR_RETURN(const double number, Number(token));
    return Finish(
        {.kind = Expr::Kind::kConst, .offset = token.offset, .number = number});
  }
  if (token.kind == Token::Kind::kName) return Name();
  return in_.Expected("a value: a number, an index, T[...] or f(...)");
}

absl::StatusOr<SyntaxPtr> ValueParser::Name() {
  const Token token = in_.Peek();
  if (in_.At("[", 1)) return Access();
  if (in_.At("(", 1)) return token.text == "pad" ? Pad() : Call();
  in_.Take();
  if (token.text == "nan") {
    return in_.Error(token, "nan is no number that a workload can hold");
  }
  ASSIGN_OR_RETURN(const int index, scope_.index(token));
  return Finish(
      {.kind = Expr::Kind::kIndex, .offset = token.offset, .index = index});
}

absl::StatusOr<SyntaxPtr> ValueParser::Call() {
  const Token name = in_.Take();
  Syntax node{.kind = Expr::Kind::kUnary, .offset = name.offset};
  size_t arity = 1;
  if (const auto function = FindWord(kFunctionWords, name.text)) {
    node.unary = *function;
  } else if (const auto type = ParseTensorDType(name.text)) {
    node.kind = Expr::Kind::kCast;
    node.cast = *type;
  } else if (name.text == "max" || name.text == "min") {
    node.kind = Expr::Kind::kBinary;
    node.binary = name.text == "max" ? BinaryOp::kMax : BinaryOp::kMin;
    arity = 2;
  } else if (name.text == "select") {
    node.kind = Expr::Kind::kSelect;
    arity = 3;
  } else if (FindWord(kReductionWords, name.text)) {
    return in_.Error(
        name, absl::StrCat("a reduction stands first on a right-"
                           "hand side; give this ",
                           std::string(name.text), " a stage of its own"));
  } else {
    return in_.Error(
        name, absl::StrCat(
                  "unknown function '", std::string(name.text),
                  "'; known are exp log sqrt rsqrt tanh sigmoid erf abs floor "
                  "round max min select pad f32 f16 bf16 i32 i8"));
  }
  RETURN_IF_ERROR(in_.Expect("(", "after a function's name"));
  for (size_t i = 0; i < arity; ++i) {
    if (i > 0) {
      RETURN_IF_ERROR(
          in_.Expect(",", absl::StrCat("and argument ", i + 1, " of ", arity,
                                       " of ", std::string(name.text))));
    }
    ASSIGN_OR_RETURN(SyntaxPtr argument, Value());
    node.operands.push_back(std::move(argument));
  }
  RETURN_IF_ERROR(in_.Expect(
      ")", absl::StrCat("after the arguments of ", std::string(name.text))));
  return Finish(std::move(node));
}

absl::StatusOr<SyntaxPtr> ValueParser::Access() {
  const Token name = in_.Take();
  ASSIGN_OR_RETURN(const int tensor, scope_.tensor(name));
  Syntax node{
      .kind = Expr::Kind::kAccess, .offset = name.offset, .tensor = tensor};
  RETURN_IF_ERROR(in_.Expect("[", "after a tensor's name"));
  do {
    if (node.subscripts.size() == kMaxRank) {
      return in_.Error(in_.Peek(), absl::StrCat("a tensor has at most ",
                                                kMaxRank, " dimensions"));
    }
    ASSIGN_OR_RETURN(Affine subscript, Subscript());
    node.subscripts.push_back(std::move(subscript));
    ASSIGN_OR_RETURN(const SubscriptPart part, Part());
    node.parts.push_back(part);
  } while (in_.Accept(","));
  RETURN_IF_ERROR(in_.Expect("]", "after the subscripts"));
  return Finish(std::move(node));
}

absl::StatusOr<SyntaxPtr> ValueParser::Pad() {
  const Token pad = in_.Take();
  RETURN_IF_ERROR(in_.Expect("(", "after pad"));
  if (!in_.AtName() || !in_.At("[", 1)) {
    return in_.Expected("a tensor's element T[...] inside pad()");
  }
  ASSIGN_OR_RETURN(const SyntaxPtr access, Access());
  RETURN_IF_ERROR(
      in_.Expect(",", "and the number that pad() gives outside the tensor"));
  Syntax node = *access;
  node.offset = pad.offset;
  ASSIGN_OR_RETURN(node.pad_value, SignedNumber());
  RETURN_IF_ERROR(in_.Expect(")", "to close pad("));
  return Finish(std::move(node));
}

absl::StatusOr<double> ValueParser::Number(const Token& token) {
  if (token.text == "inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  const std::string digits(token.text);
  if (!absl::SimpleAtod(digits, &value)) {
    return in_.Error(token, "this is no number");
  }
  if (!std::isfinite(value)) {
    return in_.Error(token, "this number is too large; write inf for infinity");
  }
  return value;
}

absl::StatusOr<double> ValueParser::SignedNumber() {
  const bool negative = in_.Accept("-");
  const Token token = in_.Peek();
  if (token.kind != Token::Kind::kNumber && !in_.At("inf")) {
    return in_.Expected("a number");
  }
  in_.Take();
  ASSIGN_OR_RETURN(const double value, Number(token));
  return negative ? -value : value;
}

// Limits that keep all later index arithmetic inside int64.
absl::Status ValueParser::CheckSubscript(const Affine& form, const Token& at) {
  bool small = Magnitude(form.constant()) <= kMaxSubscriptConstant;
  for (const Affine::Term& term : form.terms()) {
    small = small && Magnitude(term.coeff) <= kMaxSubscriptCoefficient;
  }
  if (small) return absl::OkStatus();
  return in_.Error(at, kTooLarge);
}

absl::StatusOr<Affine> ValueParser::Subscript() {
  const Token first = in_.Peek();
  Affine sum;
  bool negative = false;
  int terms = 0;
  do {
    ASSIGN_OR_RETURN(const Affine term, SubscriptTerm());
    sum = negative ? sum - term : sum + term;
    RETURN_IF_ERROR(CheckSubscript(sum, first));
    negative = in_.At("-");
    ++terms;
  } while (in_.Accept("+") || in_.Accept("-"));
  if (terms > 1 && (in_.At("/") || in_.At("%"))) {
    return in_.Error(in_.Peek(),
                     "a sum that is divided stands in parentheses, as in "
                     "(i+1)/4");
  }
  return sum;
}

// The "/ 4 % 3" of a subscript.
absl::StatusOr<SubscriptPart> ValueParser::Part() {
  SubscriptPart part;
  if (in_.Accept("/")) {
    ASSIGN_OR_RETURN(part.divisor, PartNumber());
  }
  if (in_.Accept("%")) {
    ASSIGN_OR_RETURN(part.modulus, PartNumber());
  }
  if (!part.IsWhole() && !in_.At(",") && !in_.At("]")) {
    return in_.Expected(
        "',' or ']': a quotient or remainder is a whole subscript, as in "
        "(i+1)/4");
  }
  return part;
}

absl::StatusOr<int64_t> ValueParser::PartNumber() {
  return in_.TakePositive(
      [] { return std::string("what a subscript is divided by"); }, kMaxExtent);
}

absl::StatusOr<Affine> ValueParser::SubscriptTerm() {
  const Token first = in_.Peek();
  ASSIGN_OR_RETURN(Affine product, SubscriptFactor());
  while (in_.Accept("*")) {
    ASSIGN_OR_RETURN(Affine factor, SubscriptFactor());
    if (!factor.IsConstant()) std::swap(product, factor);
    if (!factor.IsConstant()) {
      return in_.Error(first,
                       "a subscript is a sum of indices times numbers; two "
                       "indices cannot be multiplied");
    }
    bool fits = Fits(product.constant(), factor.constant());
    for (const Affine::Term& term : product.terms()) {
      fits = fits && Fits(term.coeff, factor.constant());
    }
    if (!fits) return in_.Error(first, kTooLarge);
    product = product * factor.constant();
    RETURN_IF_ERROR(CheckSubscript(product, first));
  }
  return product;
}

absl::StatusOr<Affine> ValueParser::SubscriptFactor() {
  if (nesting_ >= kMaxExpressionDepth) return in_.Error(in_.Peek(), kTooDeep);
  ++nesting_;
  const absl::Cleanup leave = [this] { --nesting_; };
  const Token token = in_.Peek();
  if (in_.Accept("-")) {
    ASSIGN_OR_RETURN(const Affine inner, SubscriptFactor());
    return inner * -1;
  }
  if (in_.Accept("(")) {
    ASSIGN_OR_RETURN(Affine inner, Subscript());
    RETURN_IF_ERROR(in_.Expect(")", "to close the parenthesis"));
    return inner;
  }
  if (token.kind == Token::Kind::kNumber) {
    in_.Take();
    const std::string digits(token.text);
    int64_t value = 0;
    if (digits.find_first_not_of("0123456789") != std::string::npos) {
      return in_.Error(token, "a subscript holds whole numbers only");
    }
    if (!absl::SimpleAtoi(digits, &value) || value > kMaxSubscriptConstant) {
      return in_.Error(token, "this number is too large for a subscript");
    }
    return Affine(value);
  }
  if (token.kind == Token::Kind::kName) {
    if (in_.At("[", 1) || in_.At("(", 1)) {
      return in_.Error(token,
                       "a subscript is a sum of indices times whole numbers; "
                       "it holds no tensor and no function. An element whose "
                       "place is read from a tensor (a gather) cannot be said; "
                       "the operator gather selects among all rows");
    }
    in_.Take();
    ASSIGN_OR_RETURN(const int index, scope_.index(token));
    return Affine::Var(index);
  }
  return in_.Expected("an index or a whole number");
}

}  // namespace regatta

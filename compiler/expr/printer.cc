#include "compiler/expr/printer.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/expr/words.h"

namespace regatta {
namespace {

using NameOf = std::function<std::string(int)>;

// How tightly an operator binds; an operand that binds less is parenthesised.
enum Precedence { kComparison, kSum, kProduct, kUnary, kPrimary };

struct Text {
  std::string text;
  Precedence precedence;
};

// The shortest text that reads back as the same element of the type.
std::string NumberText(double value, DType type) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const std::to_chars_result result =
      IsFloat(type)
          ? std::to_chars(buffer, std::end(buffer), static_cast<float>(value))
          : std::to_chars(buffer, std::end(buffer),
                          static_cast<int64_t>(value));
  return std::string(buffer, result.ptr);
}

class Printer {
 public:
  Printer(const Workload& workload, NameOf index, NameOf tensor)
      : workload_(workload),
        index_(std::move(index)),
        tensor_(std::move(tensor)) {}

  std::string Print() const {
    std::vector<std::string> stages;
    for (const Stage& stage : workload_.stages) {
      stages.push_back(StageText(stage));
    }
    std::vector<std::string> bindings;
    for (size_t i = 0; i < workload_.indices.size(); ++i) {
      bindings.push_back(
          absl::StrCat(index_(i), "=", workload_.indices[i].extent));
    }
    for (size_t i = 0; i < workload_.tensors.size(); ++i) {
      const TensorDecl& tensor = workload_.tensors[i];
      bindings.push_back(absl::StrCat(tensor_(i), "=",
                                      std::string(DTypeName(tensor.dtype)), "[",
                                      absl::StrJoin(tensor.shape, ","), "]"));
    }
    return absl::StrCat(absl::StrJoin(stages, "; "), " where ",
                        absl::StrJoin(bindings, ", "));
  }

 private:
  std::string Indices(const std::vector<int>& ids) const {
    return absl::StrJoin(ids, ",", [this](std::string* out, int id) {
      absl::StrAppend(out, index_(id));
    });
  }

  std::string StageText(const Stage& stage) const {
    std::string text = absl::StrCat(tensor_(stage.tensor), "[",
                                    Indices(stage.indices), "] = ");
    std::string value = Value(*stage.value).text;
    if (stage.reduction != Reduction::kNone) {
      absl::StrAppend(&text,
                      std::string(WordOf(kReductionWords, stage.reduction)),
                      "(", Indices(stage.reduce_indices), ") ");
      // `max(i,j) -x` would read as a difference.
      if (value[0] == '-') value = absl::StrCat("(", value, ")");
    }
    return text + value;
  }

  std::string Operand(const Expr& expr, Precedence least) const {
    Text text = Value(expr);
    if (text.precedence >= least) return text.text;
    return absl::StrCat("(", text.text, ")");
  }

  std::string Call(std::string_view name,
                   const std::vector<ExprPtr>& arguments) const {
    return absl::StrCat(
        std::string(name), "(",
        absl::StrJoin(arguments, ", ",
                      [this](std::string* out, const ExprPtr& argument) {
                        absl::StrAppend(out, Value(*argument).text);
                      }),
        ")");
  }

  std::vector<std::string> Subscripts(const Expr& access) const {
    const std::vector<int64_t>& shape = workload_.tensors[access.tensor].shape;
    std::vector<std::string> texts;
    for (const Position& at : Positions(shape, access)) {
      const std::string form = at.form.ToString(index_);
      int64_t divisor = at.extent;
      for (size_t d = at.first; d < at.first + at.count; ++d) {
        if (at.count == 1) {
          texts.push_back(form);
          continue;
        }
        divisor /= shape[d];
        const bool plain = at.form.terms().size() == 1 &&
                           at.form == Affine::Var(at.form.terms()[0].var);
        std::string text = plain ? form : absl::StrCat("(", form, ")");
        if (divisor > 1 || d == at.first) absl::StrAppend(&text, "/", divisor);
        if (d > at.first) absl::StrAppend(&text, "%", shape[d]);
        texts.push_back(std::move(text));
      }
    }
    return texts;
  }

  Text Access(const Expr& expr) const {
    const std::string element = absl::StrCat(
        tensor_(expr.tensor), "[", absl::StrJoin(Subscripts(expr), ","), "]");
    if (!expr.pad_value) return {element, kPrimary};
    return {absl::StrCat("pad(", element, ", ",
                         NumberText(*expr.pad_value, expr.dtype), ")"),
            kPrimary};
  }

  Text Infix(std::string_view symbol, const Expr& expr, Precedence left,
             Precedence right, Precedence own) const {
    return {
        absl::StrCat(Operand(*expr.operands[0], left), " ", std::string(symbol),
                     " ", Operand(*expr.operands[1], right)),
        own};
  }

  // Operators group to the left, so a right operand of the same precedence is
  // parenthesised: the text has the tree's structure.
  Text Binary(const Expr& expr) const {
    switch (expr.binary) {
      case BinaryOp::kAdd:
        return Infix("+", expr, kSum, kProduct, kSum);
      case BinaryOp::kSub:
        return Infix("-", expr, kSum, kProduct, kSum);
      case BinaryOp::kMul:
        return Infix("*", expr, kProduct, kUnary, kProduct);
      case BinaryOp::kDiv:
        return Infix("/", expr, kProduct, kUnary, kProduct);
      case BinaryOp::kLess:
        return Infix("<", expr, kSum, kSum, kComparison);
      case BinaryOp::kLessEqual:
        return Infix("<=", expr, kSum, kSum, kComparison);
      case BinaryOp::kEqual:
        return Infix("==", expr, kSum, kSum, kComparison);
      case BinaryOp::kMax:
        return {Call("max", expr.operands), kPrimary};
      case BinaryOp::kMin:
        return {Call("min", expr.operands), kPrimary};
    }
    CHECK(false) << "binary " << static_cast<int>(expr.binary);
  }

  Text Value(const Expr& expr) const {
    switch (expr.kind) {
      case Expr::Kind::kConst:
        return {NumberText(expr.constant, expr.dtype),
                std::signbit(expr.constant) ? kUnary : kPrimary};
      case Expr::Kind::kIndex:
        return {expr.subscripts[0].ToString(index_), kPrimary};
      case Expr::Kind::kAccess:
        return Access(expr);
      case Expr::Kind::kUnary:
        if (expr.unary == UnaryOp::kNeg) {
          return {absl::StrCat("-", Operand(*expr.operands[0], kUnary)),
                  kUnary};
        }
        return {Call(WordOf(kFunctionWords, expr.unary), expr.operands),
                kPrimary};
      case Expr::Kind::kBinary:
        return Binary(expr);
      case Expr::Kind::kSelect:
        return {Call("select", expr.operands), kPrimary};
      case Expr::Kind::kCast:
        return {Call(DTypeName(expr.dtype), expr.operands), kPrimary};
    }
    CHECK(false) << "kind " << static_cast<int>(expr.kind);
  }

  const Workload& workload_;
  NameOf index_;
  NameOf tensor_;
};

}  // namespace

std::string PrintExpression(const Workload& workload) {
  return Printer(
             workload, [&](int id) { return workload.indices[id].name; },
             [&](int id) { return workload.tensors[id].name; })
      .Print();
}

std::string CanonicalExpression(const Workload& workload) {
  return Printer(
             workload,
             [](int id) {
               const std::string name = absl::StrCat("i", id);
               // i8 and i32 are types.
               return IsReserved(name) ? name + "_" : name;
             },
             [](int id) { return absl::StrCat("t", id); })
      .Print();
}

}  // namespace regatta

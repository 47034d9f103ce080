// From syntax to a typed workload.
//
// Types: an element has its tensor's type; arithmetic happens in f32 or i32
// (narrower operands are widened by casts that are part of the expression);
// floats and integers mix only through written casts. Numbers and index names
// take the type of what they meet.
#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/syntax.h"
#include "compiler/expr/verifier.h"
#include "compiler/module/half.h"

namespace regatta {
namespace {

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLess || op == BinaryOp::kLessEqual ||
         op == BinaryOp::kEqual;
}

// neg and abs work on any number; the others on floats only.
bool IsFloatFunction(UnaryOp op) {
  return op != UnaryOp::kNeg && op != UnaryOp::kAbs;
}

std::string Name(DType type) { return std::string(DTypeName(type)); }

// Whether `type` can hold `number`, rounded for floats.
bool Holds(DType type, double number) {
  if (IsFloat(type)) {
    return std::isinf(number) || std::isfinite(RoundToDType(number, type));
  }
  return std::trunc(number) == number && RoundToDType(number, type) == number;
}

// The type of an expression before context: absent when it is made of numbers
// and index names only.
using MaybeType = std::optional<DType>;

class ValueBuilder {
 public:
  ValueBuilder(const WorkloadSyntax& syntax, const std::vector<int>& tensor_ids,
               const std::vector<TensorDecl>& tensors)
      : syntax_(syntax), tensor_ids_(tensor_ids), tensors_(tensors) {}

  // The value of a stage that assigns a tensor of type `target`.
  absl::StatusOr<ExprPtr> Root(const Syntax& node, DType target) {
    ASSIGN_OR_RETURN(const MaybeType type, Infer(node));
    if (type == DType::kBool) {
      return Error(node, "a comparison stands only first in select(c, a, b)");
    }
    return Build(node, AccumulatorType(target));
  }

 private:
  absl::Status Error(const Syntax& node, std::string_view message) const {
    return ErrorAt(syntax_.text, node.offset, message);
  }

  const TensorDecl& Tensor(const Syntax& access) const {
    return tensors_[tensor_ids_[access.tensor]];
  }

  // The type that two operands meet in; absent when neither has one.
  absl::StatusOr<MaybeType> Join(const Syntax& node, MaybeType a,
                                 MaybeType b) const {
    for (const MaybeType& type : {a, b}) {
      if (type == DType::kBool) {
        return Error(node, "a comparison stands only first in select(c, a, b)");
      }
    }
    if (a) a = AccumulatorType(*a);
    if (b) b = AccumulatorType(*b);
    if (a && b && *a != *b) {
      return Error(
          node, absl::StrCat("the operands have the types ", Name(*a), " and ",
                             Name(*b), "; convert one, as in ", "f32(x)"));
    }
    return a ? a : b;
  }

  absl::StatusOr<MaybeType> Infer(const Syntax& node) {
    if (const auto it = types_.find(&node); it != types_.end()) {
      return it->second;
    }
    ASSIGN_OR_RETURN(const MaybeType type, InferNew(node));
    types_.emplace(&node, type);
    return type;
  }

  absl::StatusOr<MaybeType> InferNew(const Syntax& node) {
    std::vector<MaybeType> operands;
    for (const SyntaxPtr& operand : node.operands) {
      ASSIGN_OR_RETURN(const MaybeType type, Infer(*operand));
      operands.push_back(type);
    }
    switch (node.kind) {
      case Expr::Kind::kConst:
      case Expr::Kind::kIndex:
        return MaybeType();
      case Expr::Kind::kAccess:
        return MaybeType(Tensor(node).dtype);
      case Expr::Kind::kCast: {
        ASSIGN_OR_RETURN(const MaybeType joined,
                         Join(node, operands[0], std::nullopt));
        static_cast<void>(joined);
        return MaybeType(node.cast);
      }
      case Expr::Kind::kUnary: {
        ASSIGN_OR_RETURN(const MaybeType type,
                         Join(node, operands[0], std::nullopt));
        if (!IsFloatFunction(node.unary)) return type;
        if (type == DType::kI32) {
          return Error(node,
                       "this function takes floats; convert its argument with "
                       "f32(x)");
        }
        return MaybeType(DType::kF32);
      }
      case Expr::Kind::kBinary:
        return InferBinary(node, operands[0], operands[1]);
      case Expr::Kind::kSelect:
        if (operands[0] != DType::kBool) {
          return Error(node, "select(c, a, b) needs a comparison as c");
        }
        return Join(node, operands[1], operands[2]);
    }
    return Error(node, "unknown node");
  }

  absl::StatusOr<MaybeType> InferBinary(const Syntax& node, MaybeType a,
                                        MaybeType b) {
    ASSIGN_OR_RETURN(const MaybeType type, Join(node, a, b));
    if (IsComparison(node.binary)) return MaybeType(DType::kBool);
    if (node.binary != BinaryOp::kDiv) return type;
    if (type == DType::kI32) {
      return Error(node,
                   "integers are not divided; convert with f32(x), divide and "
                   "convert back");
    }
    return MaybeType(DType::kF32);
  }

  // What numbers and index names alone are: i32 unless one of them is not
  // whole. Decided on the number as f32 holds it, so that printing keeps the
  // answer.
  DType WeakType(const Syntax& node) const {
    if (node.kind == Expr::Kind::kConst) {
      return Holds(DType::kI32, RoundToDType(node.number, DType::kF32))
                 ? DType::kI32
                 : DType::kF32;
    }
    for (const SyntaxPtr& operand : node.operands) {
      if (WeakType(*operand) == DType::kF32) return DType::kF32;
    }
    return DType::kI32;
  }

  // The node with type `want` (f32 or i32): untyped parts become it, narrower
  // ones are widened to it.
  absl::StatusOr<ExprPtr> BuildAs(const Syntax& node, DType want) {
    ASSIGN_OR_RETURN(ExprPtr value, Build(node, want));
    if (value->dtype == want) return value;
    return std::make_shared<const Expr>(Expr{.kind = Expr::Kind::kCast,
                                             .dtype = want,
                                             .operands = {std::move(value)}});
  }

  absl::StatusOr<ExprPtr> Build(const Syntax& node, DType weak) {
    ASSIGN_OR_RETURN(const MaybeType type, Infer(node));
    Expr expr{.kind = node.kind,
              .dtype = type.value_or(weak),
              .unary = node.unary,
              .binary = node.binary};
    switch (node.kind) {
      case Expr::Kind::kConst:
        if (!Holds(expr.dtype, node.number)) {
          return Error(node,
                       absl::StrCat("this number is no ", Name(expr.dtype)));
        }
        expr.constant = RoundToDType(node.number, expr.dtype);
        break;
      case Expr::Kind::kIndex:
        expr.subscripts = {Affine::Var(node.index)};
        break;
      case Expr::Kind::kAccess: {
        expr.tensor = tensor_ids_[node.tensor];
        RETURN_IF_ERROR(SetSubscripts(node, expr));
        if (!node.pad_value) break;
        if (!Holds(expr.dtype, *node.pad_value)) {
          return Error(node,
                       absl::StrCat("the padding is no ", Name(expr.dtype)));
        }
        expr.pad_value = RoundToDType(*node.pad_value, expr.dtype);
        break;
      }
      case Expr::Kind::kCast: {
        const Syntax& operand = *node.operands[0];
        ASSIGN_OR_RETURN(ExprPtr value, Build(operand, WeakType(operand)));
        expr.operands = {std::move(value)};
        break;
      }
      case Expr::Kind::kUnary: {
        ASSIGN_OR_RETURN(ExprPtr value, BuildAs(*node.operands[0], expr.dtype));
        expr.operands = {std::move(value)};
        break;
      }
      case Expr::Kind::kBinary: {
        DType operand_type = expr.dtype;
        if (IsComparison(node.binary)) {
          ASSIGN_OR_RETURN(operand_type, ComparedType(node));
        }
        for (const SyntaxPtr& operand : node.operands) {
          ASSIGN_OR_RETURN(ExprPtr value, BuildAs(*operand, operand_type));
          expr.operands.push_back(std::move(value));
        }
        break;
      }
      case Expr::Kind::kSelect: {
        ASSIGN_OR_RETURN(ExprPtr condition, Build(*node.operands[0], weak));
        ASSIGN_OR_RETURN(ExprPtr a, BuildAs(*node.operands[1], expr.dtype));
        ASSIGN_OR_RETURN(ExprPtr b, BuildAs(*node.operands[2], expr.dtype));
        expr.operands = {std::move(condition), std::move(a), std::move(b)};
        break;
      }
    }
    return std::make_shared<const Expr>(std::move(expr));
  }

  // Subscripts with what they carry: from the last dimension back, e % K opens
  // a run of dimensions that e / ... closes.
  absl::Status SetSubscripts(const Syntax& node, Expr& expr) const {
    expr.subscripts = node.subscripts;
    const std::vector<int64_t>& shape = Tensor(node).shape;
    const Affine* run = nullptr;  // the form e of an open run
    int64_t divisor = 1;          // extents of the run so far
    for (size_t d = shape.size(); d-- > 0;) {
      const SubscriptPart& part = node.parts[d];
      const Affine& form = node.subscripts[d];
      if (run == nullptr && part.IsWhole()) continue;
      const bool fits = run == nullptr
                            ? part.divisor == 1
                            : part.divisor == divisor && form == *run;
      const bool opens_or_goes_on = part.modulus == shape[d];
      if (!fits || (part.modulus != 0 && !opens_or_goes_on) ||
          (part.modulus != 0 && d == 0)) {
        return PartError(node, d);
      }
      if (expr.carries.empty()) expr.carries.assign(shape.size(), false);
      if (run != nullptr) expr.subscripts[d] = Affine();
      if (part.modulus == 0) {
        run = nullptr;
        divisor = 1;
        continue;
      }
      expr.carries[d] = true;
      run = &form;
      // Larger tensors are refused later; here the product must not overflow.
      if (shape[d] > kMaxTensorElements / divisor) return PartError(node, d);
      divisor *= shape[d];
    }
    return absl::OkStatus();
  }

  absl::Status PartError(const Syntax& node, size_t d) const {
    const TensorDecl& tensor = Tensor(node);
    return Error(
        node, absl::StrCat(
                  "dimension ", d, " of '", tensor.name, "' (of extent ",
                  tensor.shape[d],
                  ") has a quotient or remainder that is not part of one "
                  "position: neighbouring dimensions read T[e/K,e%K], or "
                  "T[e/(K*L),e/L%K,e%L], with the same e and the extents K and "
                  "L of the dimensions after the first"));
  }

  absl::StatusOr<DType> ComparedType(const Syntax& node) {
    ASSIGN_OR_RETURN(const MaybeType a, Infer(*node.operands[0]));
    ASSIGN_OR_RETURN(const MaybeType b, Infer(*node.operands[1]));
    ASSIGN_OR_RETURN(const MaybeType joined, Join(node, a, b));
    return joined.value_or(WeakType(node));
  }

  const WorkloadSyntax& syntax_;
  const std::vector<int>& tensor_ids_;
  const std::vector<TensorDecl>& tensors_;
  std::unordered_map<const Syntax*, MaybeType> types_;
};

class Elaborator {
 public:
  explicit Elaborator(const WorkloadSyntax& syntax) : syntax_(syntax) {}

  absl::StatusOr<Workload> Run() {
    for (size_t i = 0; i < syntax_.indices.size(); ++i) {
      out_.indices.push_back({syntax_.indices[i].name, *syntax_.extents[i]});
    }
    RETURN_IF_ERROR(OrderTensors());
    for (const StageSyntax& stage : syntax_.stages) {
      RETURN_IF_ERROR(ShapeAccesses(*stage.value));
    }
    for (const StageSyntax& stage : syntax_.stages) {
      RETURN_IF_ERROR(BuildStage(stage));
    }
    return std::move(out_);
  }

 private:
  absl::Status Error(size_t offset, std::string_view message) const {
    return ErrorAt(syntax_.text, offset, message);
  }

  // Inputs by first use, then assigned tensors by assignment; shapes of bound
  // and assigned ones.
  absl::Status OrderTensors() {
    tensor_ids_.assign(syntax_.tensors.size(), -1);
    std::vector<bool> assigned(syntax_.tensors.size(), false);
    for (const StageSyntax& stage : syntax_.stages) {
      if (assigned[stage.tensor]) {
        return Error(
            stage.offset,
            absl::StrCat("tensor '", syntax_.tensors[stage.tensor].name,
                         "' is assigned twice"));
      }
      assigned[stage.tensor] = true;
    }
    for (const StageSyntax& stage : syntax_.stages) {
      AddInputs(*stage.value, assigned);
    }
    for (const StageSyntax& stage : syntax_.stages) {
      AddTensor(stage.tensor, TensorRole::kOutput);
      std::vector<int64_t> shape;
      for (int id : stage.indices) shape.push_back(out_.indices[id].extent);
      TensorDecl& tensor = out_.tensors.back();
      const auto& binding = syntax_.bindings[stage.tensor];
      if (binding && binding->shape != shape) {
        return Error(binding->offset,
                     absl::StrCat("the shape of '", tensor.name,
                                  "' is not that of its indices; leave the "
                                  "binding out or make them equal"));
      }
      tensor.shape = std::move(shape);
    }
    return absl::OkStatus();
  }

  // In the order of the tree, not of the text: `a > b` is read as `b < a`, and
  // printing must give the same order.
  void AddInputs(const Syntax& node, const std::vector<bool>& assigned) {
    if (node.kind == Expr::Kind::kAccess && !assigned[node.tensor] &&
        tensor_ids_[node.tensor] < 0) {
      AddTensor(node.tensor, TensorRole::kInput);
    }
    for (const SyntaxPtr& operand : node.operands) {
      AddInputs(*operand, assigned);
    }
  }

  void AddTensor(size_t syntax_id, TensorRole role) {
    tensor_ids_[syntax_id] = static_cast<int>(out_.tensors.size());
    const auto& binding = syntax_.bindings[syntax_id];
    TensorDecl tensor{.name = syntax_.tensors[syntax_id].name,
                      .dtype = syntax_.default_dtype,
                      .role = role};
    if (binding) {
      tensor.dtype = binding->dtype;
      tensor.shape = binding->shape;
    }
    out_.tensors.push_back(std::move(tensor));
  }

  // Grows unbound inputs to what the accesses need; internal tensors get their
  // role.
  absl::Status ShapeAccesses(const Syntax& node) {
    for (const SyntaxPtr& operand : node.operands) {
      RETURN_IF_ERROR(ShapeAccesses(*operand));
    }
    if (node.kind != Expr::Kind::kAccess) return absl::OkStatus();
    TensorDecl& tensor = out_.tensors[tensor_ids_[node.tensor]];
    const bool is_input = tensor.role == TensorRole::kInput;
    const bool is_bound = syntax_.bindings[node.tensor].has_value();
    if (!is_input) tensor.role = TensorRole::kInternal;
    if (is_input && !is_bound && node.pad_value) {
      return Error(node.offset,
                   absl::StrCat("'", tensor.name,
                                "' is read through pad() and "
                                "so needs a shape; add ",
                                tensor.name, "=", Name(tensor.dtype),
                                "[...] after 'where'"));
    }
    if (is_input && !is_bound && tensor.shape.empty()) {
      tensor.shape.assign(node.subscripts.size(), 1);
    }
    if (tensor.shape.size() != node.subscripts.size()) {
      return Error(node.offset,
                   absl::StrCat("'", tensor.name, "' has ", tensor.shape.size(),
                                " dimensions, not ", node.subscripts.size()));
    }
    if (!is_input || is_bound) return absl::OkStatus();
    const auto extents = [&](int id) { return out_.indices[id].extent; };
    for (size_t d = 0; d < node.subscripts.size(); ++d) {
      const SubscriptPart& part = node.parts[d];
      const int64_t last = part.modulus > 0
                               ? part.modulus - 1
                               : node.subscripts[d].Max(extents) / part.divisor;
      tensor.shape[d] = std::max(tensor.shape[d], last + 1);
    }
    return absl::OkStatus();
  }

  absl::Status BuildStage(const StageSyntax& syntax) {
    const TensorDecl& tensor = out_.tensors[tensor_ids_[syntax.tensor]];
    Stage stage{.tensor = tensor_ids_[syntax.tensor],
                .indices = syntax.indices,
                .reduction = syntax.reduction,
                .reduce_indices = syntax.reduce_indices};
    ASSIGN_OR_RETURN(stage.value,
                     ValueBuilder(syntax_, tensor_ids_, out_.tensors)
                         .Root(*syntax.value, tensor.dtype));
    stage.accumulator = stage.value->dtype;
    if (stage.reduction != Reduction::kNone) {
      stage.accumulator = AccumulatorType(stage.value->dtype);
      if (stage.accumulator != stage.value->dtype) {
        stage.value =
            std::make_shared<const Expr>(Expr{.kind = Expr::Kind::kCast,
                                              .dtype = stage.accumulator,
                                              .operands = {stage.value}});
      }
    }
    const DType from = stage.accumulator;
    const bool storable =
        IsFloat(from) ? IsFloat(tensor.dtype)
                      : !IsFloat(tensor.dtype) &&
                            DTypeBytes(from) <= DTypeBytes(tensor.dtype);
    if (!storable) {
      return Error(
          syntax.offset,
          absl::StrCat("'", tensor.name, "' holds ", Name(tensor.dtype),
                       " but its values are ", Name(from), "; bind ",
                       tensor.name, "=", Name(from), "[...], or convert with ",
                       Name(tensor.dtype),
                       "(x) in a stage without "
                       "reduction"));
    }
    out_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  const WorkloadSyntax& syntax_;
  std::vector<int> tensor_ids_;  // of the workload, by id of the syntax
  Workload out_;
};

}  // namespace

absl::StatusOr<Workload> Elaborate(const WorkloadSyntax& syntax) {
  return Elaborator(syntax).Run();
}

}  // namespace regatta

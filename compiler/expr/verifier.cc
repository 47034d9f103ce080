#include "compiler/expr/verifier.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/expr/syntax.h"

namespace regatta {
namespace {

// How far outside a tensor a padded access may reach. With it, sums of
// subscripts times strides fit int64.
constexpr int64_t kMaxPadReach = int64_t{1} << 26;

absl::Status Bad(std::string message) {
  return absl::InvalidArgumentError(std::move(message));
}

class Verifier {
 public:
  explicit Verifier(const Workload& workload)
      : workload_(workload), extents_(Extents(workload)) {}

  absl::Status Run() {
    if (workload_.stages.empty()) return Bad("the workload has no stage");
    for (const IndexVar& index : workload_.indices) {
      if (index.extent < 1 || index.extent > kMaxExtent) {
        return Bad(absl::StrCat("index '", index.name, "' has the extent ",
                                index.extent, "; it must be from 1 to ",
                                kMaxExtent));
      }
    }
    for (const TensorDecl& tensor : workload_.tensors) {
      RETURN_IF_ERROR(CheckTensor(tensor));
    }
    for (const Stage& stage : workload_.stages) {
      RETURN_IF_ERROR(CheckStage(stage));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckTensor(const TensorDecl& tensor) const {
    if (tensor.dtype == DType::kF64 || tensor.dtype == DType::kBool) {
      return Bad(absl::StrCat("tensor '", tensor.name,
                              "' has a type that no tensor may have"));
    }
    // The product in floating point, so that it cannot overflow.
    double elements = 1;
    for (int64_t extent : tensor.shape) elements *= static_cast<double>(extent);
    if (elements > static_cast<double>(kMaxTensorElements)) {
      return Bad(absl::StrCat("tensor '", tensor.name, "' has ", elements,
                              " elements; at most ", kMaxTensorElements,
                              " are supported"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckStage(const Stage& stage) {
    const TensorDecl& tensor = workload_.tensors[stage.tensor];
    stage_ = absl::StrCat("stage '", tensor.name, "': ");
    std::set<int> bound;
    double iterations = 1;
    for (const std::vector<int>* ids :
         {&stage.indices, &stage.reduce_indices}) {
      for (int id : *ids) {
        if (!bound.insert(id).second) {
          return Bad(absl::StrCat(stage_, "index '", workload_.indices[id].name,
                                  "' is bound twice"));
        }
        iterations *= static_cast<double>(workload_.indices[id].extent);
      }
    }
    if (iterations > kMaxStageIterations) {
      return Bad(absl::StrCat(stage_, iterations, " iterations; at most ",
                              kMaxStageIterations, " are supported"));
    }
    if ((stage.reduction == Reduction::kNone) != stage.reduce_indices.empty()) {
      return Bad(absl::StrCat(stage_,
                              "a reduction and its indices go "
                              "together"));
    }
    if (tensor.role == TensorRole::kInput || assigned_.count(stage.tensor)) {
      return Bad(absl::StrCat(stage_,
                              "the tensor is assigned twice or is an "
                              "input"));
    }
    for (size_t d = 0; d < std::max(tensor.shape.size(), stage.indices.size());
         ++d) {
      if (tensor.shape.size() != stage.indices.size() ||
          tensor.shape[d] != workload_.indices[stage.indices[d]].extent) {
        return Bad(absl::StrCat(stage_,
                                "the tensor's shape is not that of its "
                                "indices"));
      }
    }
    RETURN_IF_ERROR(CheckExpr(*stage.value, bound));
    if (stage.value->dtype != stage.accumulator) {
      return Bad(absl::StrCat(stage_,
                              "the value's type is not the "
                              "accumulator's"));
    }
    assigned_.insert(stage.tensor);
    return absl::OkStatus();
  }

  absl::Status CheckExpr(const Expr& expr, const std::set<int>& bound) const {
    for (const Affine& subscript : expr.subscripts) {
      for (const Affine::Term& term : subscript.terms()) {
        if (!bound.count(term.var)) {
          return Bad(absl::StrCat(stage_, "index '",
                                  workload_.indices[term.var].name,
                                  "' is not bound"));
        }
      }
    }
    if (expr.kind == Expr::Kind::kAccess) return CheckAccess(expr);
    for (const ExprPtr& operand : expr.operands) {
      RETURN_IF_ERROR(CheckExpr(*operand, bound));
    }
    return CheckTypes(expr);
  }

  absl::Status CheckTypes(const Expr& expr) const {
    size_t arity = 0;
    bool consistent = true;
    const auto type = [&](size_t i) { return expr.operands[i]->dtype; };
    if (expr.kind == Expr::Kind::kUnary || expr.kind == Expr::Kind::kCast) {
      arity = 1;
    } else if (expr.kind == Expr::Kind::kBinary) {
      arity = 2;
    } else if (expr.kind == Expr::Kind::kSelect) {
      arity = 3;
    }
    if (expr.operands.size() != arity) consistent = false;
    if (consistent && expr.kind == Expr::Kind::kUnary) {
      consistent = type(0) == expr.dtype;
    } else if (consistent && expr.kind == Expr::Kind::kBinary) {
      const bool compares = expr.binary == BinaryOp::kLess ||
                            expr.binary == BinaryOp::kLessEqual ||
                            expr.binary == BinaryOp::kEqual;
      consistent = type(0) == type(1) &&
                   expr.dtype == (compares ? DType::kBool : type(0));
    } else if (consistent && expr.kind == Expr::Kind::kSelect) {
      consistent = type(0) == DType::kBool && type(1) == expr.dtype &&
                   type(2) == expr.dtype;
    }
    if (consistent) return absl::OkStatus();
    return Bad(absl::StrCat(stage_,
                            "the operands' number or types do not fit "
                            "their operator"));
  }

  absl::Status CheckAccess(const Expr& expr) const {
    const TensorDecl& tensor = workload_.tensors[expr.tensor];
    if (tensor.role != TensorRole::kInput && !assigned_.count(expr.tensor)) {
      return Bad(absl::StrCat(stage_, "tensor '", tensor.name,
                              "' is read before it is assigned"));
    }
    if (tensor.shape.size() != expr.subscripts.size()) {
      return Bad(absl::StrCat(stage_, "'", tensor.name, "' has ",
                              tensor.shape.size(), " dimensions, not ",
                              expr.subscripts.size()));
    }
    if (expr.dtype != tensor.dtype) {
      return Bad(absl::StrCat(stage_, "an element of '", tensor.name,
                              "' does not have its type"));
    }
    if (!expr.carries.empty() &&
        (expr.carries.size() != tensor.shape.size() || expr.carries[0])) {
      return Bad(absl::StrCat(stage_, "'", tensor.name,
                              "' carries from its first dimension"));
    }
    const int64_t reach = expr.pad_value ? kMaxPadReach : 0;
    for (const Position& at : Positions(tensor.shape, expr)) {
      const int64_t least = at.form.Min(extents_);
      const int64_t greatest = at.form.Max(extents_);
      if (least >= -reach && greatest < at.extent + reach) continue;
      const std::string subscript =
          at.form.ToString([&](int id) { return workload_.indices[id].name; });
      return Bad(absl::StrCat(
          stage_, "subscript '", subscript, "' of '", tensor.name,
          "' runs from ", least, " to ", greatest, ", but dimension ", at.first,
          at.count > 1 ? " with those after it" : "", " has the elements 0 to ",
          at.extent - 1,
          expr.pad_value ? "; padding does not reach that far"
                         : "; read it through pad(T[...], 0) or bind a larger "
                           "tensor"));
    }
    return absl::OkStatus();
  }

  const Workload& workload_;
  const std::function<int64_t(int)> extents_;
  std::set<int> assigned_;
  std::string stage_;  // "stage 'C': "
};

}  // namespace

absl::Status VerifyWorkload(const Workload& workload) {
  return Verifier(workload).Run();
}

}  // namespace regatta

#include "compiler/space/rules/accesses.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

void Collect(const Expr& expr, std::vector<const Expr*>& found) {
  if (expr.kind == Expr::Kind::kAccess) found.push_back(&expr);
  for (const ExprPtr& operand : expr.operands) Collect(*operand, found);
}

}  // namespace

std::vector<const Expr*> Accesses(const ExprPtr& expr) {
  std::vector<const Expr*> found;
  Collect(*expr, found);
  return found;
}

Affine FlatForm(const Workload& workload, const Expr& access) {
  const std::vector<int64_t>& shape = workload.tensors[access.tensor].shape;
  Affine form;
  for (size_t d = 0; d < shape.size(); ++d) {
    form = form * shape[d] + access.subscripts[d];
  }
  return form;
}

bool CanLeave(const Workload& workload, const Expr& access) {
  if (!access.pad_value) return false;
  const std::vector<int64_t>& shape = workload.tensors[access.tensor].shape;
  const auto extent = [&](int i) { return workload.indices[i].extent; };
  for (const Position& at : Positions(shape, access)) {
    if (at.form.Min(extent) < 0 || at.form.Max(extent) >= at.extent) {
      return true;
    }
  }
  return false;
}

int StridedAccesses(const Workload& workload, const Stage& stage, int index) {
  int strided = 0;
  for (const Expr* access : Accesses(stage.value)) {
    const int64_t step = FlatForm(workload, *access).Coeff(index);
    if (step != 0 && step != 1) ++strided;
  }
  return strided;
}

std::vector<std::string> DimensionLabels(const Stage& stage,
                                         const std::vector<int>& indices) {
  std::vector<std::string> labels;
  for (int index : indices) {
    const auto at =
        std::find(stage.indices.begin(), stage.indices.end(), index);
    labels.push_back(absl::StrCat("d", at - stage.indices.begin()));
  }
  return labels;
}

}  // namespace regatta

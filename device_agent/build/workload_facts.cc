#include "device_agent/build/workload_facts.h"

#include <algorithm>
#include <vector>

namespace regatta {
namespace {

// The longest sum behind any tensor that `expr` reads.
int64_t LongestRead(const Expr& expr, const std::vector<int64_t>& lengths) {
  int64_t longest = 0;
  if (expr.kind == Expr::Kind::kAccess) longest = lengths[expr.tensor];
  for (const ExprPtr& operand : expr.operands) {
    longest = std::max(longest, LongestRead(*operand, lengths));
  }
  return longest;
}

}  // namespace

int64_t ReductionLength(const Workload& workload) {
  std::vector<int64_t> lengths(workload.tensors.size(), 0);
  int64_t longest = 1;
  // Stages stand in the order of their assignments, so what one reads is known.
  for (const Stage& stage : workload.stages) {
    int64_t own = stage.reduction == Reduction::kNone ? 0 : 1;
    for (int index : stage.reduce_indices)
      own *= workload.indices[index].extent;
    lengths[stage.tensor] = own + LongestRead(*stage.value, lengths);
    longest = std::max(longest, lengths[stage.tensor]);
  }
  return longest;
}

bool AllF32(const Workload& workload) {
  return std::all_of(
      workload.tensors.begin(), workload.tensors.end(),
      [](const TensorDecl& tensor) { return tensor.dtype == DType::kF32; });
}

}  // namespace regatta

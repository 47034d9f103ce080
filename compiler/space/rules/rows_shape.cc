#include "compiler/space/rules/rows_shape.h"

#include <algorithm>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_shape.h"

namespace regatta {
namespace {

// Whether every loop within a row would jump through memory where the loop over
// rows would not.
bool RunsAcrossRows(const Workload& w, const Stage& stage, int row_dims) {
  std::vector<int> within = stage.reduce_indices;
  if (stage.indices.size() > static_cast<size_t>(row_dims)) {
    within.push_back(stage.indices.back());
  }
  if (within.empty()) return false;
  const int rows = StridedAccesses(w, stage, stage.indices[row_dims - 1]);
  return std::all_of(within.begin(), within.end(), [&](int index) {
    return StridedAccesses(w, stage, index) > rows;
  });
}

// Whether `stage` can join the run of stages from `first` on.
bool Joins(const Workload& w, int first, int stage, int row_dims) {
  const Stage& s = w.stages[stage];
  const std::vector<int64_t>& shape = w.tensors[s.tensor].shape;
  const std::vector<int64_t>& rows = w.tensors[w.stages[first].tensor].shape;
  if (shape.size() < static_cast<size_t>(row_dims) ||
      !std::equal(rows.begin(), rows.begin() + row_dims, shape.begin())) {
    return false;
  }
  if (MatchContraction(w, stage) || RunsAcrossRows(w, s, row_dims))
    return false;
  for (const Expr* access : Accesses(s.value)) {
    const bool in_run = std::any_of(
        w.stages.begin() + first, w.stages.begin() + stage,
        [&](const Stage& earlier) { return earlier.tensor == access->tensor; });
    if (!in_run) continue;
    for (int d = 0; d < row_dims; ++d) {
      if (access->subscripts[d] != Affine::Var(s.indices[d])) return false;
    }
    // Its subscripts are not the positions that a reader computes again at.
    if (Carries(*access)) return false;
    // Beyond the rows nothing may be padded: rows have no room around them.
    if (CanLeave(w, *access)) return false;
  }
  return true;
}

bool ReadIn(const Workload& w, int tensor, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    for (const Expr* access : Accesses(w.stages[i].value)) {
      if (access->tensor == tensor) return true;
    }
  }
  return false;
}

}  // namespace

RowsShape MatchRows(const Workload& w, int first) {
  const int stages = static_cast<int>(w.stages.size());
  RowsShape best;
  const int rank =
      static_cast<int>(w.tensors[w.stages[first].tensor].shape.size());
  for (int row_dims = 1; row_dims <= rank; ++row_dims) {
    RowsShape shape{.first = first, .row_dims = row_dims};
    bool inner = false;  // some stage has work within a row
    while (first + shape.count < stages &&
           Joins(w, first, first + shape.count, row_dims)) {
      const Stage& s = w.stages[first + shape.count];
      inner = inner || s.indices.size() > static_cast<size_t>(row_dims) ||
              !s.reduce_indices.empty();
      ++shape.count;
    }
    if (inner && shape.count >= 2 && shape.count >= best.count) best = shape;
  }
  for (int i = 0; i < best.count; ++i) {
    const int tensor = w.stages[first + i].tensor;
    const size_t end = first + best.count;
    const bool local = w.tensors[tensor].role == TensorRole::kInternal &&
                       !ReadIn(w, tensor, end, w.stages.size());
    best.local.push_back(local);
    // One number a row is kept: readers would compute it for every element.
    const bool within =
        w.tensors[tensor].shape.size() > static_cast<size_t>(best.row_dims);
    best.recomputable.push_back(
        local && within && w.stages[first + i].reduction == Reduction::kNone &&
        ReadIn(w, tensor, first + i + 1, end));
  }
  return best;
}

}  // namespace regatta

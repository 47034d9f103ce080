// Writes the kernel of one run of stages, row by row.
#ifndef REGATTA_COMPILER_SPACE_RULES_ROWS_EMITTER_H_
#define REGATTA_COMPILER_SPACE_RULES_ROWS_EMITTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/rows_shape.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {

struct RowsTiling {
  int64_t vec = 1, vectors = 1, rows = 1, unroll = 1;
  bool recompute = false;   // element-wise results again where they are read
  bool reciprocal = false;  // x / s as x * (1 / s) for one s a row
  bool streaming = false;   // results of the run; see streaming.h
  bool parallel = false;
};

// Whether some stage of the run divides by a number that is the same for the
// whole row and computed in the run.
bool DividesByRowValue(const Workload& workload, const RowsShape& shape);

class RowsEmitter {
 public:
  // REQUIRES: everything outlives the emitter.
  RowsEmitter(const RowsShape& shape, const RowsTiling& tiling,
              LoopBuilder& out)
      : shape_(shape), tiling_(tiling), out_(out), w_(out.workload()) {}

  // Appends the kernel.
  void Emit();

 private:
  using Bind = std::function<Affine(int)>;

  const Stage& StageAt(int i) const { return w_.stages[shape_.first + i]; }
  int64_t RowExtent(int dim) const {
    return w_.tensors[StageAt(0).tensor].shape[dim];
  }
  // Elements of one row of a stage's result.
  int64_t Inner(const Stage& stage) const;

  // Loops over all row dimensions but the last one, which is tiled.
  loop::StmtPtr Outer(int dim);
  // All stages of `rows` rows; each block of rows has scratch of its own.
  loop::StmtPtr Stages(int64_t rows);
  int AddScratch(const std::string& prefix, int tensor, int64_t elements);
  loop::StmtPtr OneStage(int i, int64_t rows);
  bool DividedByLater(int i) const;
  loop::StmtPtr Reciprocals(const Stage& stage, int64_t rows);
  StageTiling TilingOf(const Stage& stage, int64_t rows) const;
  StageTarget TargetOf(const Stage& stage) const;

  // Offset in a result's scratch; `subscripts` are bound.
  Affine ScratchOffset(const Stage& stage,
                       const std::vector<Affine>& subscripts) const;
  // A result of this run: from scratch, or computed again.
  std::optional<loop::ValuePtr> Read(const Expr& access, const Bind& bind);
  // The stage with divisions by row values as products.
  Stage WithoutDivisions(const Stage& stage);

  const RowsShape& shape_;
  const RowsTiling& tiling_;
  LoopBuilder& out_;
  const Workload& w_;
  std::vector<Affine> row_;        // bound row dimensions; the last: first row
  std::map<int, int> scratch_;     // tensor to buffer
  std::map<int, int> reciprocal_;  // tensor to buffer of 1 / value
  std::set<const Expr*> reciprocal_reads_;  // accesses that mean 1 / value
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_ROWS_EMITTER_H_

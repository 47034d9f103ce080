// Element-wise stages computed where an earlier stage's results are stored:
// values stay in registers from stage to stage.
#ifndef REGATTA_COMPILER_SPACE_RULES_FUSED_STAGES_H_
#define REGATTA_COMPILER_SPACE_RULES_FUSED_STAGES_H_

#include <functional>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

// How many stages right behind `first` work element by element, at their own
// position, on its result, each other's and earlier tensors.
int FusableStages(const Workload& workload, int first);

// Stages [first, first + count), the later ones fused into the first.
class FusedStages {
 public:
  using Bind = std::function<Affine(int)>;

  // REQUIRES: count <= 1 + FusableStages; `out` outlives the object.
  FusedStages(LoopBuilder& out, int first, int count, bool streaming = false)
      : out_(out), first_(first), count_(count), streaming_(streaming) {}

  // The results of one row of `acc` become elements of the tensors of all
  // stages that something outside reads. `bind_at` binds the first stage's
  // indices at an element of the tile.
  loop::StmtPtr Store(
      const RegisterTile& acc, const Affine& row, const VectorTile& tile,
      const std::function<Bind(const Affine& position)>& bind_at) const;

 private:
  const Stage& StageAt(int i) const {
    return out_.workload().stages[first_ + i];
  }
  // Whether anything outside the fused stages sees the result of stage `i`.
  bool Stores(int i) const;
  // Row-major offset of the result's element, the same in all stages.
  Affine ResultOffset(const Bind& bind) const;

  LoopBuilder& out_;
  const int first_, count_;
  const bool streaming_;  // see streaming.h
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_FUSED_STAGES_H_

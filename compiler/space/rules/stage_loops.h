// The loops of one stage, whatever it computes: a nest over the output indices
// with a block of the output in registers, and inside it a nest over the
// reduced ones. Vectorised over an output index, over a reduced index (lanes
// are combined at the end), or not at all.
#ifndef REGATTA_COMPILER_SPACE_RULES_STAGE_LOOPS_H_
#define REGATTA_COMPILER_SPACE_RULES_STAGE_LOOPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

struct StageTiling {
  int vector_index = -1;  // an index of the stage, output or reduced
  int64_t lanes = 1;      // of one vector
  int64_t vectors = 1;    // side by side (output) or independent (reduced)
  int row_index = -1;     // another output index whose iterations share loads
  int64_t rows = 1;       // of them at once
  int64_t unroll = 1;     // of the innermost reduction loop
  bool reversed = false;  // outer output loops in the opposite order
  bool parallel = false;  // the outermost loop runs in parallel
};

// Values [start, start + extent) of an index. One value: bound from outside.
struct IndexRange {
  Affine start;
  int64_t extent = 1;
};

// Where one element of the result goes.
struct StageTarget {
  int buffer = -1;
  // Offset from the binding of the stage's output indices.
  std::function<Affine(const std::function<Affine(int)>& bind)> offset;
  // How it joins what is there already; kNone: it replaces it.
  Reduction accumulate = Reduction::kNone;
  bool streaming = false;  // past the caches; see streaming.h
};

// How a stage reads a tensor at a binding of its indices; absent: from the
// tensor's own buffer.
using BoundAccessHook = std::function<std::optional<loop::ValuePtr>(
    const Expr& access, const std::function<Affine(int)>& bind)>;

// The result's place in its tensor's own buffer.
StageTarget TensorTarget(const LoopBuilder& out, const Stage& stage);

class StageLoops {
 public:
  // Indices without a range run over their whole extent. REQUIRES: `out` and
  // `stage` outlive the object.
  StageLoops(LoopBuilder& out, const Stage& stage, StageTiling tiling,
             std::map<int, IndexRange> ranges, StageTarget target,
             BoundAccessHook hook = nullptr);

  loop::StmtPtr Emit();

 private:
  using Bind = std::function<Affine(int)>;

  IndexRange RangeOf(int index) const;
  loop::LoopKind NextKind(int64_t trips);
  bool VectorisesOutput() const;
  loop::StmtPtr OuterLoops(size_t depth);
  loop::StmtPtr RowTiles();
  loop::StmtPtr VectorTiles();
  // One block of the output: no reduction; reduction with the output, or
  // nothing, in lanes; reduction with a reduced index in lanes.
  loop::StmtPtr ElementwiseBlock(const VectorTile& tile);
  loop::StmtPtr ReductionBlock(const VectorTile& tile);
  loop::StmtPtr LaneReductionBlock();
  loop::StmtPtr ReductionLoops(size_t depth,
                               const std::function<loop::StmtPtr()>& body);
  loop::StmtPtr AccumulateLanes(const RegisterTile& lanes, int scalars);
  loop::StmtPtr CombineLanes(const RegisterTile& lanes, int scalars);

  Bind BindAt(const Affine& row, const Affine& position) const;
  loop::ValuePtr ValueAt(const Bind& bind) const;
  // `whole`: of a whole vector; parts of one are never streamed.
  loop::StmtPtr StoreResult(const Bind& bind, loop::ValuePtr value,
                            bool whole) const;

  LoopBuilder& out_;
  const Stage& stage_;
  const StageTiling tiling_;
  const std::map<int, IndexRange> ranges_;
  const StageTarget target_;
  const BoundAccessHook hook_;
  std::vector<int> outer_;    // output indices that get plain loops
  std::vector<int> reduced_;  // reduced indices that get plain loops
  bool parallel_left_ = false;
  // State of the walk: what indices are bound to, the current block's extents.
  std::map<int, Affine> bound_;
  int64_t rows_ = 1;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_STAGE_LOOPS_H_

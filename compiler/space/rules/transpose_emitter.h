// Writes the loops of an element-wise stage that reads tensors across their
// rows.
#ifndef REGATTA_COMPILER_SPACE_RULES_TRANSPOSE_EMITTER_H_
#define REGATTA_COMPILER_SPACE_RULES_TRANSPOSE_EMITTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/loop_nest.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {

// An element-wise stage; `across` is contiguous in the result, `along` in the
// accesses that are turned.
struct TransposeShape {
  int stage = -1;
  int across = -1, along = -1;
  std::vector<const Expr*> turned;
  std::vector<int> others;  // the other indices, outermost first
};

// Absent when the stage reduces or reads nothing across its rows. Padded reads
// are not turned.
std::optional<TransposeShape> MatchTranspose(const Workload& workload,
                                             int stage);

struct TransposeTiling {
  int64_t lanes = 1;  // of a square tile; a power of two
  // Blocks in elements, at most the extents.
  int64_t along_block = 1, across_block = 1;
  bool across_outside = false;  // order of the loops over blocks
  bool across_inside = false;   // order of the loops over tiles in a block
  bool streaming = false;       // see streaming.h
  bool parallel = false;
};

class TransposeEmitter {
 public:
  // REQUIRES: everything outlives the emitter.
  TransposeEmitter(const TransposeShape& shape, const TransposeTiling& tiling,
                   LoopBuilder& out)
      : shape_(shape),
        tiling_(tiling),
        out_(out),
        target_(TensorTarget(out, out.workload().stages[shape.stage])) {}

  // Appends the kernel.
  void Emit();

 private:
  using Bind = std::function<Affine(int)>;

  const Stage& stage() const { return out_.workload().stages[shape_.stage]; }
  int64_t Extent(int index) const {
    return out_.workload().indices[index].extent;
  }
  loop::LoopKind NextKind(int64_t trips);
  loop::StmtPtr Nest(size_t depth);
  loop::StmtPtr Blocks();
  // A rectangle in squares, those of its edges smaller.
  loop::StmtPtr Rectangle(const IndexRange& along, const IndexRange& across);
  loop::StmtPtr Square(const Affine& along, const Affine& across, int64_t size);
  // Element by element, lanes across.
  loop::StmtPtr Plain(const IndexRange& along, const IndexRange& across);
  Bind BindAt(const Affine& along, const Affine& across) const;
  loop::StmtPtr StoreAt(const Bind& bind, loop::ValuePtr value,
                        bool streaming = false) const;

  const TransposeShape& shape_;
  const TransposeTiling& tiling_;
  LoopBuilder& out_;
  const StageTarget target_;
  bool parallel_left_ = false;
  std::map<int, Affine> bound_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_TRANSPOSE_EMITTER_H_

// Writes the loops of a tiled contraction: packing kernels, blocks, the
// register-blocked micro-kernel and what is fused into its stores.
#ifndef REGATTA_COMPILER_SPACE_RULES_CONTRACTION_EMITTER_H_
#define REGATTA_COMPILER_SPACE_RULES_CONTRACTION_EMITTER_H_

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/box_copy.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/contraction_tiling.h"
#include "compiler/space/rules/loop_nest.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {

class ContractionEmitter {
 public:
  // Stages [shape.stage, shape.stage + stage_count). REQUIRES: everything
  // outlives the emitter; stage_count <= 1 + shape.fusable_stages.
  ContractionEmitter(const ContractionShape& shape,
                     const ContractionTiling& tiling, int stage_count,
                     LoopBuilder& out);

  // Appends the kernels.
  void Emit();

 private:
  using Bind = std::function<Affine(int)>;

  // One loop of the outer nest.
  struct Level {
    enum class Kind { kIndex, kRowBlocks, kVectorBlocks, kKBlocks } kind;
    int index;
    bool in_a;  // A's block depends on it
    bool parallel = false;
  };
  // Which part of the summed range a micro-kernel sees.
  struct KPart {
    bool first = true, last = true;
  };
  // Where an operand is read from: its tensor, or a copy.
  struct Operand {
    const Expr* access;
    int buffer = -1;  // of the copy
    std::function<Affine(const Bind&)> offset;
  };

  int64_t Extent(int index) const {
    return out_.workload().indices[index].extent;
  }
  const Stage& stage() const { return out_.workload().stages[shape_.stage]; }

  // Copies made before the main kernel.
  Operand PadWhole(const Expr& access, double add);
  BoxGroup Group() const { return {tiling_.group, tiling_.products.depth}; }
  int64_t Steps(int index) const {
    return TilingFacts(out_.workload(), shape_, tiling_).Steps(index);
  }
  // Whether products can be summed from A as it is.
  bool ReadsGroupsOfA() const;
  // What is added to every element of A in its copies.
  double AddToA() const { return tiling_.products.unsigned_a ? -128 : 0; }
  // Lanes of a vector that is copied.
  int64_t CopyLanes(const TensorDecl& tensor) const {
    constexpr int64_t kLeastBytes = 16;
    return tiling_.Grouped()
               ? std::max(tiling_.lanes, kLeastBytes / DTypeBytes(tensor.dtype))
               : tiling_.lanes;
  }
  // contraction_panels.cc: panels of `width` values of `index`; the indices of
  // `others` stand outside them.
  Operand PackPanels(const Expr& access, int index, int64_t width,
                     const std::vector<const std::vector<int>*>& others,
                     double add);
  int AddScratch(const std::string& name, DType dtype, int64_t elements,
                 bool per_thread);

  // The outer nest, level by level.
  std::vector<Level> Levels() const;
  void MarkParallel(std::vector<Level>& levels) const;
  loop::StmtPtr Nest(size_t level);
  loop::StmtPtr KBlocks(size_t level);
  loop::StmtPtr WithPackedA(size_t level);
  loop::StmtPtr Tiles();

  // The micro-kernel for `rows` rows from `row` and one vector tile.
  loop::StmtPtr MicroKernel(const Affine& row, int64_t rows,
                            const Affine& element, const VectorTile& tile);
  loop::StmtPtr StartValues(const RegisterTile& acc, int64_t rows,
                            const VectorTile& tile);
  loop::StmtPtr KLoops(size_t depth, int64_t rows,
                       const std::function<loop::StmtPtr()>& body);
  // The innermost summed loop, `steps` long, with A in the lanes of vectors.
  loop::StmtPtr LaneLoops(int index, const Affine& start, int64_t steps,
                          int64_t rows,
                          const std::function<loop::StmtPtr()>& body);
  loop::StmtPtr Step(const RegisterTile& acc, int64_t rows,
                     const VectorTile& tile);
  loop::StmtPtr StoreResults(const RegisterTile& acc, int64_t rows,
                             const VectorTile& tile);

  // contraction_products.cc: the same with blocks of products; `rows` and
  // `tile` are rounded up to whole blocks in `acc`.
  loop::StmtPtr ProductKernel(int64_t rows, const VectorTile& tile);
  loop::StmtPtr ProductStep(int acc, int bias, int ones, int64_t rows,
                            const VectorTile& tile);
  loop::StmtPtr ForSums(
      int64_t rows, const VectorTile& tile,
      const std::function<loop::StmtPtr(const Affine& sum, int64_t row,
                                        const VectorPosition&)>& body);

  Bind BindNow() const;
  // A at `row`: one element or group.
  loop::ValuePtr LoadA(const Affine& row) const;
  Bind BindTile(const Affine& row, const Affine& position) const;
  loop::ValuePtr LoadOperand(const Operand& operand, const Bind& bind) const;
  // Offset of the result's element in row-major order.
  Affine ResultOffset(const Bind& bind) const;
  DType ResultType() const;

  const ContractionShape& shape_;
  const ContractionTiling& tiling_;
  const int stage_count_;
  LoopBuilder& out_;

  Operand a_, b_;
  int partial_ = -1;  // buffer of sums between blocks of K
  std::vector<Level> levels_;
  size_t pack_level_ = 0;  // A's block is packed before this level's loop
  bool any_parallel_ = false;
  // State of the walk.
  std::map<int, Affine> bound_;
  IndexRange row_range_, vector_range_, k_range_;
  KPart k_part_;
  bool a_is_packed_ = false;
  // A's vectors of the current step, `a_lanes` elements a row, and the element
  // that it is at; -1: none.
  int lane_a_ = -1;
  Affine lane_;
  int block_a_ = -1;  // scratch for A's block in the current parallel loop
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_CONTRACTION_EMITTER_H_

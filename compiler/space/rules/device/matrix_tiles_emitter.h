// A contraction for matrix units, in loops.
//
// Groups compute tiles of the output, warps parts of them. Slices of both
// operands pass through a ring of stages in local memory: while a slice is
// multiplied, those behind it are on their way. The scheme is that of CUTLASS
// (Kerr, Merrill, Demouth and Tran 2017) and of the multistage copies in
// NVIDIA's Ampere tuning guide; groups go through the tiles in the order of
// Triton's matrix product (Tillet, Kung and Cox 2019), some rows of tiles at a
// time.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_EMITTER_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_EMITTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/device/matrix_copy.h"
#include "compiler/space/rules/device/matrix_products.h"
#include "compiler/space/rules/device/matrix_tiles_shape.h"
#include "compiler/space/rules/device/matrix_tiling.h"

namespace regatta {

class MatrixTilesEmitter {
 public:
  // Stages [shape.contraction.stage, + stage_count). REQUIRES: everything
  // outlives the emitter; stage_count <= 1 + fusable stages.
  MatrixTilesEmitter(const MatrixTilesShape& shape, const MatrixTiling& tiling,
                     int stage_count, bool copies_async, LoopBuilder& out);

  // Appends the kernel, and the one that adds up what it split.
  void Emit();

 private:
  using Bind = std::function<Affine(int)>;

  const Stage& stage() const {
    return out_.workload().stages[shape_.contraction.stage];
  }
  int64_t Columns() const { return shape_.b.across.extent(); }
  // Slices that one group adds up.
  int64_t Slices() const;

  // `body` where the group knows its tiles, split and outer indices; counts the
  // groups.
  loop::StmtPtr WithGroup(const Affine& group,
                          const std::function<loop::StmtPtr()>& body);
  loop::StmtPtr Thread();
  loop::StmtPtr OneStage();
  loop::StmtPtr Ring();
  loop::StmtPtr BeginSlice(const Affine& slice, const Affine& stage) const;
  loop::StmtPtr FinishSlice(const Affine& stage) const;
  bool Asynchronous() const;
  loop::StmtPtr Results();
  loop::StmtPtr ResultRow(const Affine& row);
  loop::StmtPtr StoreBlock(const Affine& row, int64_t block, int64_t column);

  const MatrixTilesShape& shape_;
  const MatrixTiling& t_;
  const int stage_count_;
  LoopBuilder& out_;
  const bool pairs_;  // the columns are even: two are stored at a time
  MatrixCopy a_, b_;
  MatrixProducts products_;
  int workspace_ = -1;  // of the parts of split sums
  int64_t groups_ = 1;
  // State of the walk.
  Affine row_tile_, column_tile_, split_;
  std::map<int, Affine> bound_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_EMITTER_H_

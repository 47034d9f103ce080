// What a warp does with the tiles in local memory: fragments, their products,
// and where its sums belong.
//
// A step is 32 bytes of the sum. It takes, for every 16 rows of the warp, four
// matrices of A, and for every 8 columns two of B (load_matrix); instructions
// of all forms find their words in them side by side.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_PRODUCTS_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_PRODUCTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/device/matrix_copy.h"
#include "compiler/space/rules/device/matrix_tiles_shape.h"
#include "compiler/space/rules/device/matrix_tiling.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

// 32-bit registers of a thread that sums and fragments take.
int64_t ProductRegisters(const MatrixTiling& tiling);
// Instructions that the code for one slice spells out.
int64_t ProductInstructions(const MatrixTilesShape& shape,
                            const MatrixTiling& tiling);

class MatrixProducts {
 public:
  // `pairs`: neighbouring columns are stored together. Adds the registers.
  // REQUIRES: everything outlives the object.
  MatrixProducts(const MatrixTilesShape& shape, const MatrixTiling& tiling,
                 const MatrixCopy& a, const MatrixCopy& b, bool pairs,
                 LoopBuilder& out);

  // `body` where thread number `thread` of the group knows its place.
  loop::StmtPtr WithThread(const Affine& thread,
                           const std::function<loop::StmtPtr()>& body);
  // Inside WithThread:
  loop::StmtPtr Clear() const;
  // Adds the products of the slice in `stage`.
  loop::StmtPtr Add(const Affine& stage) const;

  // A thread's sums: rows() rows, in blocks() blocks of two columns each.
  int64_t rows() const { return t_.warp_rows / 8; }
  int64_t blocks() const { return t_.warp_columns / 8; }
  // Row of the group's tile that row `row` of the thread is.
  Affine Row(const Affine& row) const;
  // Half the column that a block begins at.
  Affine HalfColumn(int64_t block) const;
  // Sums of a block; with `pairs` a row is a vector of two, else row 2 * row +
  // column is one.
  const RegisterTile& Sums(int64_t block) const { return sums_[block]; }
  VectorTile Tile() const { return {.lanes = pairs_ ? 2 : 1}; }

 private:
  loop::StmtPtr LoadStep(const Affine& stage, int64_t step) const;
  loop::StmtPtr MultiplyStep(int64_t step) const;
  loop::StmtPtr LoadA(const Affine& stage, int64_t step, int64_t block) const;
  loop::StmtPtr LoadB(const Affine& stage, int64_t step, int64_t block,
                      int64_t blocks) const;
  // Elements of the fragments of one step; which of them `step` uses.
  int64_t StepsA() const { return t_.warp_rows / 16 * 4 * per_word_; }
  int64_t StepsB() const { return t_.warp_columns / 8 * 2 * per_word_; }
  int64_t Slot(int64_t step) const { return t_.ahead ? step % 2 : 0; }

  const MatrixTilesShape& shape_;
  const MatrixTiling& t_;
  const MatrixCopy& a_;
  const MatrixCopy& b_;
  const bool pairs_;
  LoopBuilder& out_;
  const int64_t per_word_;  // elements in 32 bits
  int a_words_ = -1, b_words_ = -1;
  std::vector<RegisterTile> sums_;  // per block
  // Of the thread: its warp's place in the tile; lane / 4 and lane % 4; lane %
  // 8, lane / 8 % 2 and lane / 16.
  Affine warp_row_, warp_column_, row_, pair_, in_matrix_, second_, third_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_PRODUCTS_H_

// How a contraction is tiled over groups and threads, and its loops.
//
// A group computes Columns() x Rows() elements of the output, over the
// contiguous output index and one index of m (see ContractionShape); a thread
// `rows` rows next to each other and `vectors` vectors, each as far from the
// next as all threads' vectors are wide, so that neighbouring threads read and
// write neighbouring elements. The scheme is the classic one of GPU matrix
// products (Volkov and Demmel 2008; Nath, Tomov and Dongarra 2010).
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_TILES_EMITTER_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_TILES_EMITTER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/loop_nest.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {

struct TilesTiling {
  int64_t tx = 1, ty = 1;          // threads of a group
  int64_t lanes = 1, vectors = 1;  // of a thread along the contiguous index
  int64_t rows = 1;                // of a thread
  int row_index = -1;              // one of m, or -1: a single row
  int split_k = -1;                // the summed index that is cut into slices
  int64_t k_slice = 1;             // its elements in local memory at a time
  int64_t unroll = 1;              // of the loop over a slice
  bool local_a = false, local_b = false;  // operands kept in local memory
  int64_t pad = 0;        // elements between rows of the local tile of A
  bool image_b = false;   // B is read as an image, which a kernel makes first
  int64_t half_sums = 1;  // products summed in f16 before the sum takes them

  int64_t Columns() const { return tx * lanes * vectors; }
  int64_t Rows() const { return ty * rows; }
};

// Whether B of `shape` could be an image: rows of whole pixels that vectors run
// along, without padding.
bool FitsImage(const Workload& workload, const ContractionShape& shape);

// Elements of the local tiles, 0 where an operand has none.
int64_t LocalElementsA(const TilesTiling& tiling);
int64_t LocalElementsB(const TilesTiling& tiling);

class TilesEmitter {
 public:
  // Stages [shape.stage, shape.stage + stage_count). REQUIRES: everything
  // outlives the emitter; stage_count <= 1 + shape.fusable_stages; lanes
  // divide the extent of the contiguous index; A is kept in local memory only
  // where it does not vary with that index.
  TilesEmitter(const ContractionShape& shape, const TilesTiling& tiling,
               int stage_count, LoopBuilder& out);

  // Appends the kernels.
  void Emit();

 private:
  using Bind = std::function<Affine(int)>;

  int64_t Extent(int index) const {
    return index < 0 ? 1 : out_.workload().indices[index].extent;
  }
  const Stage& stage() const { return out_.workload().stages[shape_.stage]; }

  // The program of the thread; bound_, thread_ and the firsts are set.
  loop::StmtPtr Thread();
  // Loops over the summed indices but the sliced one, then over slices.
  loop::StmtPtr SummedLoops(size_t depth);
  loop::StmtPtr Slice(const IndexRange& range);
  // The group copies its tile of an operand over `range` of the sliced index.
  // `across` is the tile's other index, from `first`, `count` elements of it.
  loop::StmtPtr CopyTile(const Expr& access, int local, int64_t pitch,
                         int across, const Affine& first, int64_t count,
                         const IndexRange& range);
  // The kernel that makes an image of B.
  void EmitImage();
  // Products from `start` of a slice on, summed in f16.
  loop::StmtPtr HalfSteps(const Affine& start, int64_t count,
                          const IndexRange& range);
  loop::StmtPtr Step(const Affine& in_slice);
  // One product of a row and a vector, added to its sum.
  loop::StmtPtr Accumulate(const Affine& row, int64_t v,
                           const VectorPosition& at, const RegisterTile& b,
                           int a) const;
  loop::ValuePtr LoadB(const Bind& bind, std::vector<loop::Guard> guards) const;
  loop::StmtPtr Results();

  // Indices at row `row` of the thread and `position` of its vector `v`.
  Bind BindAt(const Affine& row, int64_t v, const Affine& position) const;
  // Where a row of the thread, or a vector of it, is inside the output.
  loop::Guard RowGuard(const Affine& row) const;
  loop::Guard VectorGuard(int64_t v) const;
  // First element of vector `v` within the group's columns.
  Affine ColumnOf(int64_t v) const;

  const ContractionShape& shape_;
  const TilesTiling& t_;
  const int stage_count_;
  LoopBuilder& out_;
  int local_a_ = -1, local_b_ = -1, image_b_ = -1;  // buffers
  std::vector<RegisterTile> sums_;                  // per vector of the thread
  std::vector<RegisterTile> half_sums_;             // in f16
  // State of the walk.
  std::map<int, Affine> bound_;
  std::array<Affine, 2> thread_;
  Affine first_row_;     // of the group
  Affine group_column_;  // which tile of the contiguous index it computes
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_TILES_EMITTER_H_

// Helpers that every rule writes its loops with: loops without degenerate
// cases, tiles with static tails, and blocks of vectors held in registers.
#ifndef REGATTA_COMPILER_SPACE_RULES_LOOP_NEST_H_
#define REGATTA_COMPILER_SPACE_RULES_LOOP_NEST_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/lower/loop_ir.h"

namespace regatta {

// A loop whose variable is given to `body`; one iteration is the body itself
// with 0. Serial loops expand `unroll` times, or wholly when they are shorter.
loop::StmtPtr MakeLoop(
    LoopBuilder& out, int64_t extent, loop::LoopKind kind,
    const std::function<loop::StmtPtr(const Affine& var)>& body,
    int64_t unroll = 1);

// [start, start + extent) in tiles of `tile`: a loop over the whole tiles, then
// the rest. `body` writes one tile from its start and its constant extent; it
// is called once for the whole tiles and once for the rest, as far as they
// exist.
loop::StmtPtr ForTiles(
    LoopBuilder& out, const Affine& start, int64_t extent, int64_t tile,
    loop::LoopKind kind,
    const std::function<loop::StmtPtr(const Affine& start, int64_t extent)>&
        body);

// Consecutive elements as whole vectors and a shorter last one.
struct VectorTile {
  int64_t lanes = 1;    // of a whole vector
  int64_t full = 1;     // whole vectors
  int64_t partial = 0;  // lanes of the last one, below `lanes`; 0: none

  static VectorTile Of(int64_t extent, int64_t lanes) {
    return {lanes, extent / lanes, extent % lanes};
  }
  int64_t Extent() const { return lanes * full + partial; }
  int64_t Vectors() const { return full + (partial > 0 ? 1 : 0); }
};

// Where one vector of a tile stands; all forms vary with the lane.
struct VectorPosition {
  int piece;        // 0: a whole vector, 1: the partial one
  Affine position;  // element in the tile
  Affine slot;      // element among those of the same piece
};

// `body` for every vector of `tile`: expanded loops over the vectors, a vector
// loop over the lanes.
loop::StmtPtr ForVectors(
    LoopBuilder& out, const VectorTile& tile,
    const std::function<loop::StmtPtr(const VectorPosition&)>& body);

// `rows` vector tiles in registers. Whole and partial vectors live in buffers
// of their own, so that each buffer is accessed with one vector width.
class RegisterTile {
 public:
  RegisterTile(LoopBuilder& out, const std::string& name, DType dtype,
               int64_t rows, const VectorTile& tile);

  // Of whole vectors, row by row; -1 where there are none.
  int buffer() const { return buffers_[0]; }
  loop::ValuePtr Load(const Affine& row, const VectorPosition& at) const;
  loop::StmtPtr Store(const Affine& row, const VectorPosition& at,
                      loop::ValuePtr value,
                      Reduction accumulate = Reduction::kNone) const;

 private:
  Affine Offset(const Affine& row, const VectorPosition& at) const;

  const LoopBuilder& out_;
  DType dtype_;
  std::array<int, 2> buffers_;
  std::array<int64_t, 2> row_elements_;
};

// `body` for every row and vector, everything expanded.
loop::StmtPtr ForRowsAndVectors(
    LoopBuilder& out, int64_t rows, const VectorTile& tile,
    const std::function<loop::StmtPtr(const Affine& row,
                                      const VectorPosition&)>& body);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_LOOP_NEST_H_

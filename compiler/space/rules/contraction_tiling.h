// How one contraction is tiled: the values of its knobs as the emitter and the
// constraints understand them.
#ifndef REGATTA_COMPILER_SPACE_RULES_CONTRACTION_TILING_H_
#define REGATTA_COMPILER_SPACE_RULES_CONTRACTION_TILING_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "compiler/expr/expr.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/target/target.h"

namespace regatta {

// The three groups of outer loops. kM: every index of m, the row index in
// blocks; kN: every index of n, the vector index in blocks; kK: blocks of the
// largest summed index.
enum class LoopGroup { kM, kN, kK };

struct ContractionTiling {
  // The micro-kernel: rows * vectors accumulators of `lanes` lanes.
  int64_t lanes = 1, vectors = 1, rows = 1;
  int row_index = -1;  // one of m, or -1 for a single row
  int split_k = -1;    // the summed index that is blocked, or -1
  // Blocks in elements, at most the extent; `row_block` is a multiple of
  // `rows`, `vector_block` of lanes * vectors, unless they are the extent.
  int64_t row_block = 1, vector_block = 1, k_block = 1;
  absl::Span<const int> k_order;  // summed indices, outermost first
  int64_t unroll = 1;             // of the innermost of them
  // Products of `depth` neighbours along `group` that one instruction sums;
  // depth 1: multiply-adds of one each.
  ProductForm products;
  int group = -1;
  // Neighbours of A along the innermost summed index that one vector load
  // brings into lanes; 1: A is loaded element by element (group by group).
  int64_t a_lanes = 1;
  bool pack_a = false;  // copy the block of A
  bool pack_b = false;  // copy B into panels of one tile's width
  std::array<LoopGroup, 3> order = {LoopGroup::kN, LoopGroup::kK,
                                    LoopGroup::kM};
  bool rows_inside = true;  // within a block: row tiles inside vector tiles
  // The group whose longest loop runs in parallel; kBatch for a batch index.
  enum class Parallel { kNone, kM, kN, kBatch } parallel = Parallel::kNone;

  int64_t TileWidth() const { return lanes * vectors; }
  bool Grouped() const { return products.depth > 1; }
  // Columns of one block of products.
  int64_t BlockCols() const {
    return products.cols == 0 ? lanes : products.cols;
  }
  // Vector registers that the micro-kernel keeps busy.
  int64_t Registers() const {
    const int64_t sums =
        (rows + products.rows - 1) / products.rows * products.rows * vectors;
    return sums + TileWidth() / BlockCols() + (a_lanes > 1 ? rows : 1) +
           (products.unsigned_a ? vectors + 1 : 0);
  }
};

// Numbers about a tiling that constraints and heuristics share.
class TilingFacts {
 public:
  TilingFacts(const Workload& workload, const ContractionShape& shape,
              const ContractionTiling& tiling)
      : w_(workload), shape_(shape), t_(tiling) {}

  int64_t Extent(int index) const {
    return index < 0 ? 1 : w_.indices[index].extent;
  }
  int64_t RowExtent() const { return Extent(t_.row_index); }
  int64_t VectorExtent() const { return Extent(shape_.vector); }
  // Product of all summed extents.
  int64_t KExtent() const;
  int64_t KBlocks() const;
  // Values of a summed index that are taken one after the other: as many as it
  // has, or groups of them.
  int64_t Steps(int index) const {
    return index == t_.group ? CeilDiv(Extent(index), t_.products.depth)
                             : Extent(index);
  }
  // Steps of the innermost summed index in one vector of A.
  int64_t LaneSteps() const {
    return t_.a_lanes > 1 ? t_.a_lanes / t_.products.depth : 1;
  }
  // Trips of the innermost summed loop.
  int64_t InnerTrips() const;
  // Loops of a group that run more than once.
  bool Active(LoopGroup group) const;
  // Whole blocks of the longest loop in the parallel group; 1 when serial.
  int64_t ParallelTrips() const { return LongestParallelLoop().trips; }
  // Time of `threads` threads as a share of one thread's: what whole rounds of
  // iterations and the serial rest take.
  double ParallelShare(int threads) const;
  // Multiply-adds of vectors that the code spells out.
  int64_t CodeSize() const;
  // Modelled time of all multiply-adds in cycles of a core that issues two
  // vector multiply-adds and two loads a cycle. For ranking tilings only.
  double ModelCycles() const;

 private:
  struct ParallelLoop {
    int64_t trips = 1, block = 1, extent = 1;
  };
  ParallelLoop LongestParallelLoop() const;
  // Rows and vectors of the micro-kernels, over all blocks and tails.
  int64_t EmittedRows() const;
  int64_t EmittedVectors() const;

  const Workload& w_;
  const ContractionShape& shape_;
  const ContractionTiling& t_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_CONTRACTION_TILING_H_

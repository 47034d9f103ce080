#include "compiler/space/rules/contraction_tiling.h"

#include <algorithm>

#include "compiler/space/rules/accesses.h"

namespace regatta {
namespace {

// `extent` in blocks of `block`, each in tiles of `tile`: what one iteration
// over a whole tile counts, plus tails, summed over the variants of the code.
int64_t EmittedUnits(int64_t extent, int64_t block, int64_t tile,
                     int64_t unit) {
  const auto in_block = [&](int64_t size) {
    return (size >= tile ? CeilDiv(tile, unit) : 0) +
           CeilDiv(size % tile, unit);
  };
  int64_t units = extent >= block ? in_block(block) : 0;
  if (extent % block > 0) units += in_block(extent % block);
  return units;
}

}  // namespace

int64_t TilingFacts::KExtent() const {
  int64_t extent = 1;
  for (int index : shape_.k) extent *= Extent(index);
  return extent;
}

int64_t TilingFacts::KBlocks() const {
  return t_.split_k < 0 ? 1 : CeilDiv(Extent(t_.split_k), t_.k_block);
}

int64_t TilingFacts::InnerTrips() const {
  if (t_.k_order.empty()) return 1;
  const int inner = t_.k_order.back();
  const int64_t values = inner == t_.split_k ? t_.k_block : Extent(inner);
  return inner == t_.group ? CeilDiv(values, t_.products.depth) : values;
}

bool TilingFacts::Active(LoopGroup group) const {
  switch (group) {
    case LoopGroup::kM:
      return std::any_of(shape_.m.begin(), shape_.m.end(),
                         [&](int index) { return index != t_.row_index; }) ||
             RowExtent() > t_.row_block;
    case LoopGroup::kN:
      return !shape_.n.empty() || VectorExtent() > t_.vector_block;
    case LoopGroup::kK:
      return KBlocks() > 1;
  }
  return false;
}

TilingFacts::ParallelLoop TilingFacts::LongestParallelLoop() const {
  using Parallel = ContractionTiling::Parallel;
  ParallelLoop longest;
  const auto consider = [&](int64_t extent, int64_t block) {
    if (extent / block <= longest.trips) return;
    longest = {extent / block, block, extent};
  };
  const auto indices = [&](const std::vector<int>& group) {
    for (int index : group) {
      if (index != t_.row_index) consider(Extent(index), 1);
    }
  };
  if (t_.parallel == Parallel::kBatch) indices(shape_.batch);
  if (t_.parallel == Parallel::kM) {
    indices(shape_.m);
    consider(RowExtent(), t_.row_block);
  }
  if (t_.parallel == Parallel::kN) {
    indices(shape_.n);
    consider(VectorExtent(), t_.vector_block);
  }
  return longest;
}

double TilingFacts::ParallelShare(int threads) const {
  const ParallelLoop loop = LongestParallelLoop();
  if (loop.trips < 2) return 1;
  const int64_t parallel = CeilDiv(loop.trips, threads) * loop.block;
  const int64_t serial = loop.extent - loop.trips * loop.block;
  return static_cast<double>(parallel + serial) / loop.extent;
}

int64_t TilingFacts::EmittedRows() const {
  return EmittedUnits(RowExtent(), t_.row_block, t_.rows, 1);
}

int64_t TilingFacts::EmittedVectors() const {
  return EmittedUnits(VectorExtent(), t_.vector_block, t_.TileWidth(),
                      t_.lanes);
}

int64_t TilingFacts::CodeSize() const {
  const int64_t k_variants = std::min<int64_t>(KBlocks(), 3);
  // Clearing and storing an accumulator cost about one multiply-add each.
  const int64_t copies = LaneSteps() > 1 ? LaneSteps() + 1 : t_.unroll;
  return EmittedRows() * EmittedVectors() * k_variants * (copies + 2);
}

double TilingFacts::ModelCycles() const {
  constexpr double kFmaLatency = 4;
  constexpr double kTileOverhead = 12;  // per tile: loops, addresses
  // Loads are never quite free, those of B least of all: its panel rarely fits
  // the first-level cache.
  constexpr double kLoadCost = 0.05;      // cycles each
  constexpr double kStreamCost = 0.0047;  // cycles per byte of B
  const double k = t_.group < 0
                       ? static_cast<double>(KExtent())
                       : static_cast<double>(KExtent()) / Extent(t_.group) *
                             static_cast<double>(Steps(t_.group));
  const auto tile_cycles = [&](int64_t rows, int64_t vectors) {
    if (rows == 0 || vectors == 0) return 0.0;
    const double fmas = static_cast<double>(rows * vectors);
    const double loads =
        shape_.vector_in_a
            ? static_cast<double>(vectors + rows * vectors)
            : static_cast<double>(vectors) +
                  static_cast<double>(rows) / static_cast<double>(LaneSteps());
    const double step = std::max({fmas / 2, loads / 2, kFmaLatency}) +
                        kLoadCost * loads +
                        kStreamCost * 4 * t_.lanes * vectors;
    return step * k + 2 * fmas + kTileOverhead;
  };
  const int64_t row_tiles = RowExtent() / t_.rows;
  const int64_t row_rest = RowExtent() % t_.rows;
  const int64_t vector_tiles = VectorExtent() / t_.TileWidth();
  const int64_t vector_rest =
      CeilDiv(VectorExtent() % t_.TileWidth(), t_.lanes);
  double blocks = 1;
  for (int index : shape_.m) {
    if (index != t_.row_index) blocks *= Extent(index);
  }
  return blocks * (row_tiles * vector_tiles * tile_cycles(t_.rows, t_.vectors) +
                   row_tiles * tile_cycles(t_.rows, vector_rest) +
                   vector_tiles * tile_cycles(row_rest, t_.vectors) +
                   tile_cycles(row_rest, vector_rest));
}

}  // namespace regatta

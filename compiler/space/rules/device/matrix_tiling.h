// The numbers of a tiling for matrix units, as the knobs of matrix_tiles say.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILING_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILING_H_

#include <cstdint>

#include "compiler/lower/intrinsics.h"

namespace regatta {

// All powers of two.
struct MatrixTiling {
  int64_t rows = 16, columns = 8;            // of a group's tile
  int64_t warp_rows = 16, warp_columns = 8;  // of a warp's
  int64_t depth = 16;  // summed elements in local memory at a time
  int64_t stages = 1;  // slices of that depth in local memory
  int64_t splits = 1;  // groups that share a tile's sum
  int64_t raster = 1;  // rows of tiles that neighbouring groups go through
  bool ahead = false;  // fragments of the next step are loaded early

  int64_t WarpsAcross() const { return columns / warp_columns; }
  int64_t Warps() const { return rows / warp_rows * WarpsAcross(); }
  int64_t Threads() const { return Warps() * loop::kWarp; }
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILING_H_

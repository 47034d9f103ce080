// What a tiling for matrix units must obey.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/device_nest.h"
#include "compiler/space/rules/device/matrix_products.h"
#include "compiler/space/rules/device/matrix_tiles_part.h"

namespace regatta {
namespace {

// Registers of all threads of a group: every device with matrix units that
// groups of threads drive has as many (CUDA C++ Programming Guide, "Compute
// Capabilities").
constexpr int64_t kGroupRegisters = 65536;
// Instructions that the code of a slice may spell out.
constexpr int64_t kMaxProducts = 512;
constexpr int64_t kMaxPieces = 64;

int64_t LocalBytes(const MatrixTilesShape& shape, const MatrixTiling& t) {
  return t.stages * (t.rows + t.columns) * t.depth * shape.ElementBytes();
}

// Of a thread.
int64_t Registers(const MatrixTilesShape& shape, const Target& target,
                  const MatrixTiling& t) {
  // What addresses and loops take, by what NVRTC 13.0 made of such kernels.
  constexpr int64_t kBesides = 56;
  const auto copies = [&](const MatrixOperand& operand, int64_t across) {
    return CopyRegisters(operand, CopyWayOf(operand, CopiesAsync(target)),
                         across * t.depth, t.Threads());
  };
  return ProductRegisters(t) + kBesides + copies(shape.a, t.rows) +
         copies(shape.b, t.columns);
}

}  // namespace

bool FitsMatrixTiles(const Target& target, const MatrixTilesShape& shape) {
  const MatrixTiling smallest{.depth = shape.StepElements()};
  return !GroupViolation(target, smallest.Threads()) &&
         !LocalViolation(target, LocalBytes(shape, smallest)) &&
         !RegisterViolation(target, Registers(shape, target, smallest));
}

// The smallest values of all knobs satisfy every constraint.
void MatrixTilesPart::AddConstraints() {
  AddSizeConstraints();
  AddLimitConstraints();
}

void MatrixTilesPart::AddSizeConstraints() {
  Require("warp_tile", [](const MatrixTiling& t) {
    if (t.warp_rows <= t.rows && t.warp_columns <= t.columns) {
      return Violation();
    }
    return Violation(absl::StrCat(t.warp_rows, "x", t.warp_columns,
                                  " elements of a warp in a tile of ", t.rows,
                                  "x", t.columns));
  });
  Require("stages_fit", [this](const MatrixTiling& t) {
    const int64_t slices = CeilDiv(Slices(t), t.splits);
    if (t.stages <= slices) return Violation();
    return Violation(absl::StrCat(t.stages, " stages for ", slices, " slices"));
  });
  Require("async_copies", [this](const MatrixTiling& t) {
    for (const MatrixOperand* operand : {&shape_.a, &shape_.b}) {
      if (t.stages <= 2 || Way(*operand) == CopyWay::kAsync) continue;
      return Violation(absl::StrCat(t.stages, " stages, but copies of ",
                                    operand == &shape_.a ? "A" : "B",
                                    " in pieces of ", operand->width,
                                    " elements do not run by themselves"));
    }
    return Violation();
  });
  Require("split_fits", [this](const MatrixTiling& t) {
    const int64_t slices = Slices(t);
    if ((t.splits - 1) * CeilDiv(slices, t.splits) < slices) {
      return Violation();
    }
    return Violation(absl::StrCat(t.splits, " groups for ", slices, " slices"));
  });
  Require("raster", [this](const MatrixTiling& t) {
    if (RowTiles(t) % t.raster == 0) return Violation();
    return Violation(absl::StrCat(RowTiles(t), " rows of tiles by ", t.raster));
  });
}

void MatrixTilesPart::AddLimitConstraints() {
  Require("group_size", [this](const MatrixTiling& t) {
    return GroupViolation(context_.target, t.Threads());
  });
  Require("local_memory", [this](const MatrixTiling& t) {
    return LocalViolation(context_.target, LocalBytes(shape_, t));
  });
  Require("registers", [this](const MatrixTiling& t) {
    return RegisterViolation(context_.target,
                             Registers(shape_, context_.target, t));
  });
  Require("group_registers", [this](const MatrixTiling& t) {
    const int64_t each = Registers(shape_, context_.target, t);
    const int64_t all = each * t.Threads();
    if (all <= kGroupRegisters) return Violation();
    return Violation(absl::StrCat(each, "*", t.Threads(), " = ", all, " of ",
                                  kGroupRegisters, " registers"));
  });
  Require("code_size", [this](const MatrixTiling& t) {
    const int64_t products = ProductInstructions(shape_, t);
    if (products > kMaxProducts) {
      return Violation(
          absl::StrCat(products, " products of at most ", kMaxProducts));
    }
    int64_t pieces = 0;
    for (const auto& [operand, across] :
         {std::pair(&shape_.a, t.rows), std::pair(&shape_.b, t.columns)}) {
      if (Way(*operand) == CopyWay::kElements) continue;
      pieces = std::max(
          pieces, CeilDiv(across * t.depth / operand->width, t.Threads()));
    }
    if (pieces <= kMaxPieces) return Violation();
    return Violation(
        absl::StrCat(pieces, " copies of a thread of at most ", kMaxPieces));
  });
}

}  // namespace regatta

// What a contraction is to matrix units: rows, columns and sums that count
// several indices as one, and how its operands lie in memory.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_SHAPE_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/device/fused_index.h"
#include "compiler/target/target.h"

namespace regatta {

// A matrix of rows (A) or columns (B) by summed elements.
struct MatrixOperand {
  const Expr* access = nullptr;
  FusedIndex across;  // its rows or columns
  DType dtype = DType::kF16;
  // Neighbours in memory are neighbours in the sum; else across.
  bool along_sum = true;
  // Elements from a multiple of it on, in that direction, that lie in one
  // aligned piece of memory, all inside the tensor or none.
  int64_t width = 1;
  // Whether its tiles in local memory lie along the sum: also where memory does
  // not, for types whose matrices cannot be turned on the way to registers.
  bool TileAlongSum() const { return along_sum || DTypeBytes(dtype) == 1; }
};

struct MatrixTilesShape {
  ContractionShape contraction;
  ProductForm form;  // the instruction
  MatrixOperand a, b;
  FusedIndex sum;
  std::vector<int> outer;  // of the output, in neither rows nor columns

  int64_t ElementBytes() const { return DTypeBytes(form.type); }
  // Summed elements of one step: what two matrices of 16 bytes a row hold.
  int64_t StepElements() const { return 32 / ElementBytes(); }
};

// Absent when the stage is no contraction of rows with columns, when anything
// but conversions stands between its operands and the sum, when padding is not
// zero, and when the target's warps have no instruction for blocks of the type.
std::optional<MatrixTilesShape> MatchMatrixTiles(const Workload& workload,
                                                 const Target& target,
                                                 int stage);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_SHAPE_H_

// A contraction for matrix units and the stages fused into it, with its knobs.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_PART_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_PART_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "compiler/space/rules/device/matrix_copy.h"
#include "compiler/space/rules/device/matrix_tiles_shape.h"
#include "compiler/space/rules/device/matrix_tiling.h"
#include "compiler/space/rules/knobbed_part.h"

namespace regatta {

// Whether the target has copies from global to local memory that run on by
// themselves.
inline bool CopiesAsync(const Target& target) {
  return target.Has("copy_async");
}

// Whether the smallest tiling fits the target: else it gets no part.
bool FitsMatrixTiles(const Target& target, const MatrixTilesShape& shape);

class MatrixTilesPart : public KnobbedPart<MatrixTiling> {
 public:
  MatrixTilesPart(const SpaceContext& context, MatrixTilesShape shape,
                  int stage_count);

  void Normalise(KnobValues& values) const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override;

 private:
  using Violation = std::optional<std::string>;

  CopyWay Way(const MatrixOperand& operand) const {
    return CopyWayOf(operand, CopiesAsync(context_.target));
  }
  int64_t Slices(const MatrixTiling& t) const;  // of the whole sum
  int64_t RowTiles(const MatrixTiling& t) const;
  int64_t Groups(const MatrixTiling& t) const;

  void AddKnobs();
  // matrix_tiles_constraints.cc
  void AddConstraints();
  void AddSizeConstraints();
  void AddLimitConstraints();
  template <typename Check>
  void Require(std::string name, Check check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           return Violation(check(Decode(values)));
         }});
  }
  // matrix_tiles_defaults.cc
  void SetDefaults();
  // The knobs of `tiling`, each at most its value; absent when illegal.
  std::optional<KnobValues> Near(const MatrixTiling& tiling) const;

  const SpaceContext& context_;
  const MatrixTilesShape shape_;
  const int stage_count_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_PART_H_

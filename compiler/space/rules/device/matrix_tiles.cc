#include "compiler/space/rules/device/matrix_tiles.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/matrix_tiles_emitter.h"
#include "compiler/space/rules/device/matrix_tiles_part.h"

namespace regatta {

MatrixTilesPart::MatrixTilesPart(const SpaceContext& context,
                                 MatrixTilesShape shape, int stage_count)
    : context_(context), shape_(std::move(shape)), stage_count_(stage_count) {
  AddKnobs();
  AddConstraints();
  SetDefaults();
}

void MatrixTilesPart::Emit(const KnobValues& values, LoopBuilder& out) const {
  const MatrixTiling tiling = Decode(values);
  MatrixTilesEmitter(shape_, tiling, stage_count_, CopiesAsync(context_.target),
                     out)
      .Emit();
}

int64_t MatrixTilesPart::Slices(const MatrixTiling& t) const {
  return CeilDiv(shape_.sum.extent(), t.depth);
}

int64_t MatrixTilesPart::RowTiles(const MatrixTiling& t) const {
  return CeilDiv(shape_.a.across.extent(), t.rows);
}

int64_t MatrixTilesPart::Groups(const MatrixTiling& t) const {
  int64_t groups =
      RowTiles(t) * CeilDiv(shape_.b.across.extent(), t.columns) * t.splits;
  for (const int index : shape_.outer) {
    groups *= context_.workload.indices[index].extent;
  }
  return groups;
}

void MatrixTilesPart::AddKnobs() {
  // The first, and sizes up to the first that covers everything.
  const auto cover = [](std::vector<int64_t> sizes, int64_t extent) {
    std::erase_if(sizes,
                  [&](int64_t s) { return s > sizes[0] && s >= 2 * extent; });
    return sizes;
  };
  const int64_t rows = shape_.a.across.extent();
  const int64_t columns = shape_.b.across.extent();
  const int64_t sum = shape_.sum.extent();
  const int64_t step = shape_.StepElements();
  Add(NumberKnob("bm", "rows of a group", cover({16, 32, 64, 128, 256}, rows)),
      [](MatrixTiling& t, int64_t x) { t.rows = x; });
  Add(NumberKnob("bn", "columns of a group",
                 cover({8, 16, 32, 64, 128, 256}, columns)),
      [](MatrixTiling& t, int64_t x) { t.columns = x; });
  Add(NumberKnob("bk", "summed elements of a slice",
                 cover({step, 2 * step, 4 * step}, sum)),
      [](MatrixTiling& t, int64_t x) { t.depth = x; });
  Add(NumberKnob("wm", "rows of a warp", cover({16, 32, 64, 128}, rows)),
      [](MatrixTiling& t, int64_t x) { t.warp_rows = x; });
  Add(NumberKnob("wn", "columns of a warp",
                 cover({8, 16, 32, 64, 128}, columns)),
      [](MatrixTiling& t, int64_t x) { t.warp_columns = x; });
  Add(NumberKnob("stages", "slices in local memory", {1, 2, 3, 4}),
      [](MatrixTiling& t, int64_t x) { t.stages = x; });
  Add(NumberKnob("split", "groups that share a sum",
                 cover({1, 2, 4, 8, 16}, CeilDiv(sum, step))),
      [](MatrixTiling& t, int64_t x) { t.splits = x; });
  Add(NumberKnob("raster", "rows of tiles that groups go through together",
                 cover({1, 2, 4, 8}, CeilDiv(rows, 16))),
      [](MatrixTiling& t, int64_t x) { t.raster = x; });
  Add(NumberKnob("ahead", "steps whose operands are loaded early", {0, 1}),
      [](MatrixTiling& t, int64_t x) { t.ahead = x == 1; });
}

// A single column of tiles is gone through in one order, and there is no next
// step to load early where a slice is one.
void MatrixTilesPart::Normalise(KnobValues& values) const {
  const MatrixTiling t = Decode(values);
  if (shape_.b.across.extent() <= t.columns) values[Place("raster")] = 1;
  if (t.depth == shape_.StepElements()) values[Place("ahead")] = 0;
}

namespace {

class MatrixTilesRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "matrix_tiles"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const auto shape =
        MatchMatrixTiles(context.workload, context.target, first_stage);
    if (!shape || !FitsMatrixTiles(context.target, *shape)) return {};
    std::vector<PartOffer> offers;
    for (int stages = 1 + shape->contraction.fusable_stages; stages > 0;
         --stages) {
      offers.push_back(
          {.stage_count = stages, .make = [&context, shape = *shape, stages] {
             return std::make_unique<MatrixTilesPart>(context, shape, stages);
           }});
    }
    return offers;
  }
};

}  // namespace

const SpaceRule& MatrixTilesRule() {
  static const MatrixTilesRuleImpl rule;
  return rule;
}

}  // namespace regatta

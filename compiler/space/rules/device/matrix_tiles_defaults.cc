// Where a search for a tiling for matrix units begins.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "compiler/space/rules/device/matrix_tiles_part.h"

namespace regatta {
namespace {

// Groups that keep a large device busy: about one for each of its processors.
constexpr int64_t kGroupsWanted = 100;

// Bytes of a slice's row instead of elements; larger tiles first.
struct Plan {
  int64_t bm, bn, bk_bytes, wm, wn, stages;
};
constexpr Plan kPlans[] = {
    {128, 128, 64, 64, 64, 4}, {128, 128, 64, 64, 32, 3},
    {128, 64, 64, 64, 32, 4},  {64, 64, 128, 32, 32, 3},
    {64, 64, 64, 32, 32, 4},   {64, 32, 128, 32, 16, 3},
    {32, 32, 128, 16, 16, 4},  {16, 32, 128, 16, 16, 4},
    {16, 16, 64, 16, 8, 3},    {16, 8, 32, 16, 8, 1},
};

}  // namespace

std::optional<KnobValues> MatrixTilesPart::Near(
    const MatrixTiling& tiling) const {
  KnobValues values;
  for (const Knob& knob : knobs_) values.push_back(knob.choices[0]);
  const auto set = [&](std::string_view name, int64_t most) {
    const size_t at = Place(name);
    for (const int64_t choice : knobs_[at].choices) {
      if (choice <= most) values[at] = choice;
    }
  };
  set("bm", tiling.rows);
  set("bn", tiling.columns);
  set("bk", tiling.depth);
  set("wm", std::min(tiling.warp_rows, values[Place("bm")]));
  set("wn", std::min(tiling.warp_columns, values[Place("bn")]));
  set("split", tiling.splits);
  if (FirstViolation(constraints_, values)) return std::nullopt;
  Wish("stages", tiling.stages, values);
  Wish("raster", tiling.raster, values);
  return values;
}

// The largest tiles that still give every processor something to do; where none
// does, those that give most.
void MatrixTilesPart::SetDefaults() {
  std::vector<KnobValues> all;
  std::optional<KnobValues> best;
  int64_t best_groups = 0;
  for (const Plan& plan : kPlans) {
    MatrixTiling tiling{.rows = plan.bm,
                        .columns = plan.bn,
                        .warp_rows = plan.wm,
                        .warp_columns = plan.wn,
                        .depth = plan.bk_bytes / shape_.ElementBytes(),
                        .stages = plan.stages,
                        .raster = 8};
    std::optional<KnobValues> values = Near(tiling);
    if (!values) continue;
    Normalise(*values);
    if (std::find(all.begin(), all.end(), *values) != all.end()) continue;
    const int64_t groups = Groups(Decode(*values));
    if (best_groups < kGroupsWanted && groups > best_groups) {
      best = values;
      best_groups = groups;
    }
    all.push_back(*std::move(values));
  }
  CHECK(best.has_value()) << "no plan is legal";
  constexpr size_t kSeeds = 5;
  seeds_.push_back(*best);
  for (KnobValues& values : all) {
    if (values == seeds_[0] || seeds_.size() == kSeeds) continue;
    seeds_.push_back(std::move(values));
  }
  for (size_t i = 0; i < knobs_.size(); ++i) {
    knobs_[i].default_value = seeds_[0][i];
  }
}

}  // namespace regatta

#include "compiler/space/rules/windows_emitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

void WindowsEmitter::Emit() {
  levels_ = Levels();
  out_.AddKernel(
      absl::StrCat("windows_", out_.workload().tensors[stage().tensor].name),
      Nest(0));
}

std::vector<WindowsEmitter::Level> WindowsEmitter::Levels() const {
  using Vectors = WindowsTiling::Vectors;
  std::vector<Level> levels;
  for (int index : shape_.others) levels.push_back({index, 1});
  const Level vectors{shape_.vector, tiling_.lanes * tiling_.vectors};
  if (tiling_.place == Vectors::kOutside) levels.push_back(vectors);
  if (shape_.outer >= 0) levels.push_back({shape_.outer, tiling_.outer});
  if (tiling_.place == Vectors::kMiddle) levels.push_back(vectors);
  if (shape_.inner >= 0) levels.push_back({shape_.inner, tiling_.inner});
  if (tiling_.place == Vectors::kInside) levels.push_back(vectors);
  if (!tiling_.parallel) return levels;
  // The first loop with work for every thread, else the longest, moves to the
  // front.
  const auto trips = [&](const Level& level) {
    return Extent(level.index) / level.tile;
  };
  auto best = std::find_if(
      levels.begin(), levels.end(),
      [&](const Level& level) { return trips(level) >= out_.threads(); });
  if (best == levels.end()) {
    best = std::max_element(
        levels.begin(), levels.end(),
        [&](const Level& a, const Level& b) { return trips(a) < trips(b); });
  }
  best->parallel = true;
  std::rotate(levels.begin(), best, best + 1);
  return levels;
}

StmtPtr WindowsEmitter::Nest(size_t i) {
  if (i == levels_.size()) return Block();
  const Level& level = levels_[i];
  const LoopKind kind =
      level.parallel ? LoopKind::kParallel : LoopKind::kSerial;
  std::vector<StmtPtr> parts;
  for (const Segment& segment :
       InteriorAndEdges(out_.workload(), stage(), level.index)) {
    parts.push_back(ForTiles(out_, Affine(segment.start), segment.extent,
                             level.tile, kind,
                             [&](const Affine& start, int64_t extent) {
                               bound_[level.index] = start;
                               extents_[level.index] = extent;
                               return Nest(i + 1);
                             }));
  }
  return loop::Block(std::move(parts));
}

// Index values at the current window and element `position` of the block.
WindowsEmitter::Bind WindowsEmitter::BindAt(const Affine& position) const {
  std::map<int, Affine> bound = bound_;
  if (shape_.inner >= 0) bound[shape_.inner] = bound[shape_.inner] + inner_;
  if (shape_.outer >= 0) bound[shape_.outer] = bound[shape_.outer] + outer_;
  bound[shape_.vector] = bound[shape_.vector] + position;
  return [bound = std::move(bound)](int index) {
    const auto it = bound.find(index);
    CHECK(it != bound.end()) << "index " << index << " is not bound";
    return it->second;
  };
}

StmtPtr WindowsEmitter::ForWindows(
    const std::function<StmtPtr(const Affine& row)>& body) {
  const int64_t inner = shape_.inner < 0 ? 1 : extents_.at(shape_.inner);
  const int64_t outer = shape_.outer < 0 ? 1 : extents_.at(shape_.outer);
  return MakeLoop(out_, outer, LoopKind::kUnrolled, [&](const Affine& o) {
    return MakeLoop(out_, inner, LoopKind::kUnrolled, [&](const Affine& i) {
      outer_ = o;
      inner_ = i;
      return body(o * inner + i);
    });
  });
}

StmtPtr WindowsEmitter::Taps(size_t depth,
                             const std::function<StmtPtr()>& body) {
  const std::vector<int>& taps = stage().reduce_indices;
  if (depth == taps.size()) return body();
  const bool spelled_out = tiling_.all_taps || depth + 1 == taps.size();
  return MakeLoop(out_, Extent(taps[depth]),
                  spelled_out ? LoopKind::kUnrolled : LoopKind::kSerial,
                  [&](const Affine& var) {
                    bound_[taps[depth]] = var;
                    return Taps(depth + 1, body);
                  });
}

StmtPtr WindowsEmitter::Block() {
  const Stage& s = stage();
  const DType type = s.accumulator;
  const VectorTile tile =
      VectorTile::Of(extents_.at(shape_.vector), tiling_.lanes);
  const int64_t windows = (shape_.inner < 0 ? 1 : extents_.at(shape_.inner)) *
                          (shape_.outer < 0 ? 1 : extents_.at(shape_.outer));
  const RegisterTile acc(out_, "acc", type, windows, tile);
  StmtPtr start = ForWindows([&](const Affine& row) {
    return ForVectors(out_, tile, [&](const VectorPosition& at) {
      return acc.Store(row, at,
                       loop::Const(loop::Identity(s.reduction, type), type));
    });
  });
  StmtPtr reduce = Taps(0, [&] {
    return ForWindows([&](const Affine& row) {
      return ForVectors(out_, tile, [&](const VectorPosition& at) {
        return acc.Store(row, at, out_.Translate(s.value, BindAt(at.position)),
                         s.reduction);
      });
    });
  });
  StmtPtr store = ForWindows([&](const Affine& row) {
    return fused_.Store(acc, row, tile, [&](const Affine& position) {
      return BindAt(position);
    });
  });
  return loop::Block({std::move(start), std::move(reduce), std::move(store)});
}

}  // namespace regatta

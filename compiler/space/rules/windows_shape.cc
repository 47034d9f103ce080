#include "compiler/space/rules/windows_shape.h"

#include <algorithm>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/fused_stages.h"

namespace regatta {
namespace {

bool UsesAny(const Affine& form, const std::vector<int>& indices) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](int index) { return form.Coeff(index) != 0; });
}

// Whether some subscript adds taps to `index`.
bool Slides(const Stage& stage, int index) {
  for (const Expr* access : Accesses(stage.value)) {
    for (const Affine& form : access->subscripts) {
      if (form.Coeff(index) != 0 && UsesAny(form, stage.reduce_indices)) {
        return true;
      }
    }
  }
  return false;
}

// Values of `index` for which `form` stays in [0, size) whatever the other
// indices are; an empty range when there are none.
Segment Inside(const Workload& w, const Affine& form, int index, int64_t size) {
  const auto extent = [&](int i) { return w.indices[i].extent; };
  const int64_t coeff = form.Coeff(index);
  const Affine rest = form - Affine::Var(index, coeff);
  const int64_t min = rest.Min(extent), max = rest.Max(extent);
  if (coeff < 0) return {};
  const int64_t first =
      std::max<int64_t>(0, CeilDiv(std::max<int64_t>(-min, 0), coeff));
  if (size - 1 - max < 0) return {};
  const int64_t end = std::min((size - 1 - max) / coeff + 1, extent(index));
  return {first, std::max<int64_t>(0, end - first)};
}

}  // namespace

std::optional<WindowsShape> MatchWindows(const Workload& w, int stage) {
  const Stage& s = w.stages[stage];
  if (s.reduction == Reduction::kNone || s.indices.empty()) return std::nullopt;
  const auto contraction = MatchContraction(w, stage);
  if (contraction && !contraction->vector_in_a && !contraction->m.empty()) {
    return std::nullopt;
  }
  WindowsShape shape{.stage = stage, .vector = s.indices.back()};
  for (int index : s.reduce_indices) shape.taps *= w.indices[index].extent;
  if (shape.taps > kMaxTaps) return std::nullopt;
  bool slides = Slides(s, shape.vector);
  for (auto it = s.indices.rbegin() + 1; it != s.indices.rend(); ++it) {
    const bool here = Slides(s, *it);
    slides = slides || here;
    if (here && shape.inner < 0) {
      shape.inner = *it;
    } else if (here && shape.outer < 0) {
      shape.outer = *it;
    } else {
      shape.others.insert(shape.others.begin(), *it);
    }
  }
  if (!slides) return std::nullopt;
  shape.fusable_stages = FusableStages(w, stage);
  return shape;
}

std::vector<Segment> InteriorAndEdges(const Workload& w, const Stage& stage,
                                      int index) {
  const int64_t extent = w.indices[index].extent;
  Segment interior{0, extent};
  for (const Expr* access : Accesses(stage.value)) {
    if (!CanLeave(w, *access)) continue;
    const std::vector<int64_t>& shape = w.tensors[access->tensor].shape;
    for (const Position& at : Positions(shape, *access)) {
      if (at.form.Coeff(index) == 0) continue;
      const Segment inside = Inside(w, at.form, index, at.extent);
      const int64_t end = std::min(interior.start + interior.extent,
                                   inside.start + inside.extent);
      interior.start = std::max(interior.start, inside.start);
      interior.extent = std::max<int64_t>(0, end - interior.start);
    }
  }
  if (interior.extent == 0) return {{0, extent}};
  const int64_t end = interior.start + interior.extent;
  std::vector<Segment> parts;
  if (interior.start > 0) parts.push_back({0, interior.start});
  parts.push_back(interior);
  if (end < extent) parts.push_back({end, extent - end});
  return parts;
}

}  // namespace regatta

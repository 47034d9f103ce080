#include "compiler/space/rules/contraction_shape.h"

#include <algorithm>
#include <utility>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/fused_stages.h"

namespace regatta {
namespace {

// The access below any conversions, or null. Copies of operands are boxes of
// single dimensions: an access that carries has none.
const Expr* AccessBelowCasts(const Expr* expr) {
  while (expr->kind == Expr::Kind::kCast) expr = expr->operands[0].get();
  return expr->kind == Expr::Kind::kAccess && !Carries(*expr) ? expr : nullptr;
}

bool Uses(const Expr& access, int index) {
  return std::any_of(
      access.subscripts.begin(), access.subscripts.end(),
      [&](const Affine& form) { return form.Coeff(index) != 0; });
}

// Whether nothing but conversions to `type` stands between the operands of
// `value` and it.
bool ConvertsOnlyTo(const Expr& value, DType type) {
  if (value.kind == Expr::Kind::kAccess) return true;
  if (value.kind == Expr::Kind::kCast && value.dtype != type) return false;
  return std::all_of(
      value.operands.begin(), value.operands.end(),
      [&](const ExprPtr& operand) { return ConvertsOnlyTo(*operand, type); });
}

int GroupIndex(const Workload& w, const ContractionShape& shape) {
  if (!shape.plain_products) return -1;
  const auto whole = [](const Expr& access, int index) {
    int uses = 0;
    bool alone = true;
    for (const Affine& form : access.subscripts) {
      if (form.Coeff(index) == 0) continue;
      ++uses;
      alone = alone && form.terms().size() == 1 && form.Coeff(index) == 1;
    }
    return uses == 1 && alone;
  };
  int best = -1;
  bool best_contiguous = false;
  for (int index : shape.k) {
    if (!whole(*shape.a, index) || !whole(*shape.b, index)) continue;
    const bool contiguous = FlatForm(w, *shape.a).Coeff(index) == 1;
    const bool better = best < 0 || contiguous > best_contiguous ||
                        (contiguous == best_contiguous &&
                         w.indices[index].extent > w.indices[best].extent);
    if (!better) continue;
    best = index;
    best_contiguous = contiguous;
  }
  return best;
}

}  // namespace

int64_t ContractionShape::Rows(const Workload& workload) const {
  int64_t rows = 1;
  for (int index : m) rows *= workload.indices[index].extent;
  return rows;
}

std::optional<ContractionShape> MatchContraction(const Workload& w, int stage) {
  const Stage& s = w.stages[stage];
  if (s.reduction != Reduction::kSum || s.indices.empty()) return std::nullopt;
  const Expr* value = s.value.get();
  while (value->kind == Expr::Kind::kCast) value = value->operands[0].get();
  if (value->kind != Expr::Kind::kBinary || value->binary != BinaryOp::kMul) {
    return std::nullopt;
  }
  ContractionShape shape{.stage = stage,
                         .a = AccessBelowCasts(value->operands[0].get()),
                         .b = AccessBelowCasts(value->operands[1].get()),
                         .k = s.reduce_indices,
                         .vector = s.indices.back()};
  if (!shape.a || !shape.b || shape.a == shape.b) return std::nullopt;
  const auto only_in = [&](const Expr* x, const Expr* y, int index) {
    return Uses(*x, index) && !Uses(*y, index);
  };
  const auto count_only_in = [&](const Expr* x, const Expr* y) {
    return std::count_if(s.indices.begin(), s.indices.end(),
                         [&](int index) { return only_in(x, y, index); });
  };
  const bool vector_shared =
      Uses(*shape.a, shape.vector) == Uses(*shape.b, shape.vector);
  if (only_in(shape.a, shape.b, shape.vector) ||
      (vector_shared && count_only_in(shape.a, shape.b) == 0)) {
    std::swap(shape.a, shape.b);
  }
  for (int index : s.indices) {
    if (index == shape.vector) continue;
    if (only_in(shape.a, shape.b, index)) {
      shape.m.push_back(index);
    } else if (only_in(shape.b, shape.a, index)) {
      shape.n.push_back(index);
    } else {
      shape.batch.push_back(index);
    }
  }
  shape.vector_in_a = Uses(*shape.a, shape.vector);
  // Nothing to share: a plain reduction.
  if (vector_shared && shape.m.empty()) return std::nullopt;
  const int64_t step = FlatForm(w, *shape.b).Coeff(shape.vector);
  shape.b_contiguous = step == 1;
  // Vectors of B would be gathered for a handful of rows.
  if (!shape.b_contiguous && shape.Rows(w) < 8) return std::nullopt;
  shape.plain_products =
      w.tensors[shape.a->tensor].dtype == w.tensors[shape.b->tensor].dtype &&
      ConvertsOnlyTo(*s.value, s.accumulator);
  shape.group = GroupIndex(w, shape);
  shape.fusable_stages = FusableStages(w, stage);
  return shape;
}

}  // namespace regatta

#include "compiler/space/rules/device/matrix_tiles_shape.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/lower/intrinsics.h"
#include "compiler/space/rules/accesses.h"

namespace regatta {
namespace {

constexpr int64_t kWidestCopyBytes = 16;

// The index whose neighbours are neighbours in memory, the longest one where a
// window has two; -1: none.
int ContiguousIndex(const Workload& w, const Expr& access) {
  const Affine form = FlatForm(w, access);
  int longest = -1;
  for (const Affine::Term& term : form.terms()) {
    if (term.coeff != 1) continue;
    if (longest < 0 || w.indices[term.var].extent > w.indices[longest].extent) {
      longest = term.var;
    }
  }
  return longest;
}

// `indices` with `last` moved to the end, where it is one of them.
std::vector<int> EndingWith(std::vector<int> indices, int last) {
  const auto it = std::find(indices.begin(), indices.end(), last);
  if (it != indices.end()) std::rotate(it, it + 1, indices.end());
  return indices;
}

// Whether padding may begin or end within neighbours along `index`.
bool PadsAlong(const Workload& w, const Expr& access, int index) {
  if (!access.pad_value) return false;
  const std::vector<int64_t>& shape = w.tensors[access.tensor].shape;
  for (const Position& at : Positions(shape, access)) {
    if (at.form.Coeff(index) == 0) continue;
    if (at.form.Min(Extents(w)) < 0 || at.form.Max(Extents(w)) >= at.extent) {
      return true;
    }
  }
  return false;
}

int64_t Width(const Workload& w, const Expr& access, int index) {
  if (PadsAlong(w, access, index)) return 1;
  const Affine form = FlatForm(w, access);
  const auto fits = [&](int64_t width) {
    return w.indices[index].extent % width == 0 &&
           form.constant() % width == 0 &&
           std::all_of(form.terms().begin(), form.terms().end(),
                       [&](const Affine::Term& term) {
                         return term.var == index || term.coeff % width == 0;
                       });
  };
  int64_t width = kWidestCopyBytes / DTypeBytes(w.tensors[access.tensor].dtype);
  while (!fits(width)) width /= 2;
  return width;
}

MatrixOperand OperandOf(const Workload& w, const Expr& access,
                        const std::vector<int>& across, const FusedIndex& sum) {
  const int contiguous = ContiguousIndex(w, access);
  MatrixOperand operand{.access = &access,
                        .across = FusedIndex(w, EndingWith(across, contiguous)),
                        .dtype = w.tensors[access.tensor].dtype};
  operand.along_sum = operand.across.last() != contiguous;
  if (contiguous == sum.last() || !operand.along_sum) {
    operand.width = Width(w, access, contiguous);
  }
  return operand;
}

// The deepest block that the target has for `type`.
std::optional<ProductForm> FormFor(const Target& target, DType type) {
  std::optional<ProductForm> best;
  for (const std::string& text : target.products) {
    const std::optional<ProductForm> form = ParseProductForm(text);
    if (!form || form->type != type || form->unsigned_a || form->cols != 8 ||
        form->rows % 8 != 0) {
      continue;
    }
    if (!best || form->depth > best->depth) best = form;
  }
  return best;
}

bool PadsWithZeros(const Expr& access) {
  return access.pad_value.value_or(0) == 0;
}

}  // namespace

std::optional<MatrixTilesShape> MatchMatrixTiles(const Workload& w,
                                                 const Target& target,
                                                 int stage) {
  std::optional<ContractionShape> shape = MatchContraction(w, stage);
  if (!shape || !shape->plain_products || shape->m.empty() ||
      shape->vector_in_a || target.subgroup != loop::kWarp ||
      !PadsWithZeros(*shape->a) || !PadsWithZeros(*shape->b)) {
    return std::nullopt;
  }
  const DType type = w.tensors[shape->a->tensor].dtype;
  const std::optional<ProductForm> form = FormFor(target, type);
  if (!form) return std::nullopt;
  std::vector<int> summed = shape->k;
  // A's order first: its rows are read for each column tile again.
  for (const Expr* access : {shape->b, shape->a}) {
    summed = EndingWith(std::move(summed), ContiguousIndex(w, *access));
  }
  const FusedIndex sum(w, std::move(summed));
  std::vector<int> outer = shape->batch;
  outer.insert(outer.end(), shape->n.begin(), shape->n.end());
  return MatrixTilesShape{.contraction = *shape,
                          .form = *form,
                          .a = OperandOf(w, *shape->a, shape->m, sum),
                          .b = OperandOf(w, *shape->b, {shape->vector}, sum),
                          .sum = sum,
                          .outer = std::move(outer)};
}

}  // namespace regatta

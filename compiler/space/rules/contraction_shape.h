// What makes a stage a contraction, and the role of each of its indices.
#ifndef REGATTA_COMPILER_SPACE_RULES_CONTRACTION_SHAPE_H_
#define REGATTA_COMPILER_SPACE_RULES_CONTRACTION_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/expr/expr.h"

namespace regatta {

// out[...] = sum over K of A[...] * B[...], each perhaps converted. Indices by
// where they appear:
//   batch  A, B and output          m  A and output
//   k      summed (A, B or both)    n  B and output
// Subscripts may be sums of indices (the windows of convolutions) and padded.
// A and B are chosen so that the contiguous index of the output is not in A
// alone: it is the one that vectors run over, B is loaded in vectors, and A is
// broadcast (or loaded in vectors too when that index is a batch index).
struct ContractionShape {
  int stage = -1;
  const Expr* a = nullptr;
  const Expr* b = nullptr;
  std::vector<int> batch, m, n, k;  // in the stage's order, without `vector`
  int vector = -1;                  // the contiguous index of the output
  bool vector_in_a = false;
  bool b_contiguous =
      false;  // neighbouring lanes of B are neighbours in memory
  // The summed index that instructions which sum several products may take
  // several values of at a time, where there are plain products: it is a whole
  // subscript of both. Contiguous in A if there is such an index, else the
  // longest; -1: none.
  int group = -1;
  // Both operands have one type and nothing but conversions to the sum's type
  // stands between them and the sum: what instructions that sum several
  // products need.
  bool plain_products = false;
  // Stages after `stage` that can be computed where the result is stored:
  // element by element from the result, each other and earlier tensors.
  int fusable_stages = 0;

  // Element loads of A and B can be shared: there is more than one row.
  int64_t Rows(const Workload& workload) const;
};

// Absent when the stage is no contraction, or one without an index to vectorise
// or to share loads over.
std::optional<ContractionShape> MatchContraction(const Workload& workload,
                                                 int stage);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_CONTRACTION_SHAPE_H_

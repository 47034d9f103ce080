// Which reductions run over an outer dimension of what they read, and their
// loops.
#ifndef REGATTA_COMPILER_SPACE_RULES_FOLD_SHAPE_H_
#define REGATTA_COMPILER_SPACE_RULES_FOLD_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {

// A reduction whose largest operand varies slowest, among the indices that it
// depends on and apart from those in `outside`, with the reduced index
// `folded`.
struct FoldShape {
  int stage = -1;
  int folded = -1;
  std::vector<int> outside;  // output indices that vary more slowly still
  std::vector<int> inside;   // the other output indices; not empty
  // What lanes run over: the index of the largest operand's neighbouring
  // elements.
  int vector = -1;
  bool vector_reduced = false;
};

// Absent when the stage is no such reduction, or a contraction, which has
// better loops of its own.
std::optional<FoldShape> MatchFold(const Workload& workload, int stage);

struct FoldTiling {
  int64_t lanes = 1, vectors = 1;
  int64_t rows = 1;       // output elements at once where lanes are reduced
  int64_t depth = 1;      // values of `folded` per pass over the result
  int64_t unroll = 1;     // of the innermost reduction loop
  int64_t block = 0;      // of the contiguous output index; 0: all
  bool parallel = false;  // over `outside` or the blocks
};

// Appends the kernels.
void EmitFold(const FoldShape& shape, const FoldTiling& tiling,
              LoopBuilder& out);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_FOLD_SHAPE_H_

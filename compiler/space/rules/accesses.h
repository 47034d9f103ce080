// What rules ask about the tensor accesses of a stage.
#ifndef REGATTA_COMPILER_SPACE_RULES_ACCESSES_H_
#define REGATTA_COMPILER_SPACE_RULES_ACCESSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/expr/expr.h"

namespace regatta {

// Every access in `expr`, left to right.
std::vector<const Expr*> Accesses(const ExprPtr& expr);

// Row-major offset of an access as a form over index ids.
Affine FlatForm(const Workload& workload, const Expr& access);

// Whether some subscript of a padded access can leave its tensor.
bool CanLeave(const Workload& workload, const Expr& access);

// How far apart in memory neighbouring values of `index` lie in the accesses of
// a stage, weighed for vectorising over it: the number of accesses that step by
// more than one element.
int StridedAccesses(const Workload& workload, const Stage& stage, int index);

// "d0", "d2", ...: the places of `indices` among the stage's output dimensions,
// as labels of a knob that chooses one.
std::vector<std::string> DimensionLabels(const Stage& stage,
                                         const std::vector<int>& indices);

// `a` rounded up to a multiple of `b`; positive numbers.
inline int64_t RoundUp(int64_t a, int64_t b) { return (a + b - 1) / b * b; }
inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_ACCESSES_H_

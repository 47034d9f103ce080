// The same computation with fewer indices, for rules to look at.
#ifndef REGATTA_COMPILER_SPACE_SIMPLIFY_H_
#define REGATTA_COMPILER_SPACE_SIMPLIFY_H_

#include "compiler/expr/expr.h"

namespace regatta {

// `workload` without indices of extent 1 and without the dimensions that they
// leave, and with neighbouring dimensions merged wherever their indices always
// run together: C[i,j] = A[i,j] + 1 becomes C[ij] = A[ij] + 1. Tensor ids,
// roles and elements, in row-major order, stay as they are; index ids do not.
// A stage or tensor may end up without any index or dimension: one element.
// `text`, `canonical` and `key` are copied and describe the original.
Workload Simplify(const Workload& workload);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_SIMPLIFY_H_

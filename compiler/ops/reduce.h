// Sums and the like over any dimensions of a tensor.
#ifndef REGATTA_COMPILER_OPS_REDUCE_H_
#define REGATTA_COMPILER_OPS_REDUCE_H_

#include "compiler/ops/op.h"

namespace regatta {

Op ReduceOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_REDUCE_H_

// A tensor with its dimensions in another order.
#ifndef REGATTA_COMPILER_OPS_TRANSPOSE_H_
#define REGATTA_COMPILER_OPS_TRANSPOSE_H_

#include "compiler/ops/op.h"

namespace regatta {

Op TransposeOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_TRANSPOSE_H_

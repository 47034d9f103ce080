// Row-wise softmax, shifted by the row's maximum.
#ifndef REGATTA_COMPILER_OPS_SOFTMAX_H_
#define REGATTA_COMPILER_OPS_SOFTMAX_H_

#include "compiler/ops/op.h"

namespace regatta {

Op SoftmaxOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_SOFTMAX_H_

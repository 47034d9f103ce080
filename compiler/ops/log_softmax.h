// Logarithm of the softmax of rows.
#ifndef REGATTA_COMPILER_OPS_LOG_SOFTMAX_H_
#define REGATTA_COMPILER_OPS_LOG_SOFTMAX_H_

#include "compiler/ops/op.h"

namespace regatta {

Op LogSoftmaxOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_LOG_SOFTMAX_H_

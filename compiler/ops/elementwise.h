// A chain of functions of every element.
#ifndef REGATTA_COMPILER_OPS_ELEMENTWISE_H_
#define REGATTA_COMPILER_OPS_ELEMENTWISE_H_

#include "compiler/ops/op.h"

namespace regatta {

Op ElementwiseOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_ELEMENTWISE_H_

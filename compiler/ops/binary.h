// Two tensors element by element, with broadcasting.
#ifndef REGATTA_COMPILER_OPS_BINARY_H_
#define REGATTA_COMPILER_OPS_BINARY_H_

#include "compiler/ops/op.h"

namespace regatta {

Op BinaryOperatorOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_BINARY_H_

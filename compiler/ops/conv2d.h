// Two-dimensional convolution (cross-correlation, as deep learning has it).
#ifndef REGATTA_COMPILER_OPS_CONV2D_H_
#define REGATTA_COMPILER_OPS_CONV2D_H_

#include "compiler/ops/op.h"

namespace regatta {

Op Conv2dOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_CONV2D_H_

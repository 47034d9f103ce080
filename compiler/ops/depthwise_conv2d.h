// Convolution of every channel with kernels of its own.
#ifndef REGATTA_COMPILER_OPS_DEPTHWISE_CONV2D_H_
#define REGATTA_COMPILER_OPS_DEPTHWISE_CONV2D_H_

#include "compiler/ops/op.h"

namespace regatta {

Op DepthwiseConv2dOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_DEPTHWISE_CONV2D_H_

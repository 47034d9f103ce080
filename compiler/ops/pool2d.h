// The greatest or mean element of windows over an image.
#ifndef REGATTA_COMPILER_OPS_POOL2D_H_
#define REGATTA_COMPILER_OPS_POOL2D_H_

#include "compiler/ops/op.h"

namespace regatta {

Op Pool2dOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_POOL2D_H_

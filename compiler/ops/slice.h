// A regular part of a tensor.
#ifndef REGATTA_COMPILER_OPS_SLICE_H_
#define REGATTA_COMPILER_OPS_SLICE_H_

#include "compiler/ops/op.h"

namespace regatta {

Op SliceOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_SLICE_H_

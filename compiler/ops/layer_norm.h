// Rows with mean 0 and variance 1, then scaled and shifted by column.
#ifndef REGATTA_COMPILER_OPS_LAYER_NORM_H_
#define REGATTA_COMPILER_OPS_LAYER_NORM_H_

#include "compiler/ops/op.h"

namespace regatta {

Op LayerNormOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_LAYER_NORM_H_

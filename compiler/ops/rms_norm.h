// Rows with mean square 1, then scaled by column.
#ifndef REGATTA_COMPILER_OPS_RMS_NORM_H_
#define REGATTA_COMPILER_OPS_RMS_NORM_H_

#include "compiler/ops/op.h"

namespace regatta {

Op RmsNormOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_RMS_NORM_H_

// Rows of a table that another tensor names.
#ifndef REGATTA_COMPILER_OPS_GATHER_H_
#define REGATTA_COMPILER_OPS_GATHER_H_

#include "compiler/ops/op.h"

namespace regatta {

Op GatherOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_GATHER_H_

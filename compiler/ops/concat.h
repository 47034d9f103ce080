// Tensors one behind the other along a dimension.
#ifndef REGATTA_COMPILER_OPS_CONCAT_H_
#define REGATTA_COMPILER_OPS_CONCAT_H_

#include "compiler/ops/op.h"

namespace regatta {

Op ConcatOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_CONCAT_H_

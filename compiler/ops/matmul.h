// C[m,n] = A[m,k] * B[k,n].
#ifndef REGATTA_COMPILER_OPS_MATMUL_H_
#define REGATTA_COMPILER_OPS_MATMUL_H_

#include "compiler/ops/op.h"

namespace regatta {

Op MatmulOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_MATMUL_H_

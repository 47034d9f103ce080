// C[b,m,n] = A[b,m,k] * B[b,k,n] for every b.
#ifndef REGATTA_COMPILER_OPS_BATCH_MATMUL_H_
#define REGATTA_COMPILER_OPS_BATCH_MATMUL_H_

#include "compiler/ops/op.h"

namespace regatta {

Op BatchMatmulOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_BATCH_MATMUL_H_

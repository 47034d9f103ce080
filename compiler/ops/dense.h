// Y[m,n] = activation(X[m,k] * W[k,n] + bias[n]).
#ifndef REGATTA_COMPILER_OPS_DENSE_H_
#define REGATTA_COMPILER_OPS_DENSE_H_

#include "compiler/ops/op.h"

namespace regatta {

Op DenseOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_DENSE_H_

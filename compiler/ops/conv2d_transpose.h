// The transpose of a two-dimensional convolution: images grow by the stride.
#ifndef REGATTA_COMPILER_OPS_CONV2D_TRANSPOSE_H_
#define REGATTA_COMPILER_OPS_CONV2D_TRANSPOSE_H_

#include "compiler/ops/op.h"

namespace regatta {

// With stride s, kernel row r of input row i adds to output row s*i + r - pad.
// Output rows y are split into phases f: y + pad = s*q + f gets kernel rows
// f + s*t from input rows q - t, for all t. Each phase is a convolution with
// every s-th kernel row, so no inserted zeros are multiplied, and all of them
// are one contraction:
//   T[n,q,f,u,g,o] = sum(t,v,c) X[n,q-t,u-v,c] * W[f+s*t,g+s*v,c,o]
// In memory T is the image of s*q rows. Where that is more than the output, a
// second stage takes the part: Y[n,y,x,o] = T[n,(y+e)/s,(y+e)%s,...,o].
Op Conv2dTransposeOp();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_CONV2D_TRANSPOSE_H_

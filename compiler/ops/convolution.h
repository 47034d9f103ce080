// The expression of a grouped two-dimensional convolution, in every layout.
#ifndef REGATTA_COMPILER_OPS_CONVOLUTION_H_
#define REGATTA_COMPILER_OPS_CONVOLUTION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ops/op.h"

namespace regatta {

// Channels of a convolution. Each group of ci / groups inputs makes its own
// co / groups outputs. REQUIRES: groups divides both.
struct ConvolutionChannels {
  int64_t ci = 1, co = 1, groups = 1;
};

// Parameters besides the channels: n, h, w, kh, kw, the window's, `layout`,
// `block`, and the epilogue's. The arrays, without the group's indices where
// groups=1, and without c or o where a group has one input or output:
//   NHWC    X[n,y,x,g*C+c]         W[r,s,c,g,o]             Y[n,y,x,g,o]
//   NCHW    X[n,g*C+c,y,x]         W[g,o,c,r,s]             Y[n,g,o,y,x]
//   NCHWc   X[n,g*C+cb,y,x,cc]     W[g,ob,cb,r,s,cc,oc]     Y[n,g,ob,y,x,oc]
// where C is the inputs (blocks of inputs) of a group. In memory, Y is an image
// of co channels in the layout. With one channel a group, blocks are of groups:
// X[n,gb,y,x,gc] W[gb,r,s,gc] Y[n,gb,y,x,gc].
absl::StatusOr<std::string> ConvolutionExpression(
    const OpArguments& arguments, const ConvolutionChannels& channels);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_CONVOLUTION_H_

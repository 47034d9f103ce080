#include "tests/bench/operator_rows.h"

namespace regatta::bench {
namespace {

constexpr auto kCompute = OperatorRow::Bound::kCompute;
constexpr auto kMemory = OperatorRow::Bound::kMemory;

constexpr OperatorRow kRows[] = {
    {"matmul", "matmul(m=512,n=512,k=512)", kCompute, 2.0 * 512 * 512 * 512},
    {"batch_matmul", "batch_matmul(b=64,m=128,n=128,k=64)", kCompute,
     2.0 * 64 * 128 * 128 * 64},
    {"dense gelu", "dense(m=512,n=512,k=512,activation=gelu)", kCompute,
     2.0 * 512 * 512 * 512},
    {"dense relu", "dense(m=256,n=1000,k=512,activation=relu)", kCompute,
     2.0 * 256 * 1000 * 512},
    {"conv2d 3x3", "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1)",
     kCompute, 2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d strided",
     "conv2d(n=1,h=56,w=56,ci=64,co=128,kh=3,kw=3,stride=2,pad=1)", kCompute,
     2.0 * 28 * 28 * 9 * 64 * 128},
    {"conv2d dilated",
     "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=2,dilation=2)", kCompute,
     2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d 1x1", "conv2d(n=1,h=56,w=56,ci=256,co=128,kh=1,kw=1)", kCompute,
     2.0 * 56 * 56 * 256 * 128},
    {"conv2d grouped",
     "conv2d(n=1,h=56,w=56,ci=128,co=128,kh=3,kw=3,pad=1,groups=4)", kCompute,
     2.0 * 56 * 56 * 9 * 32 * 128},
    {"conv2d NCHW",
     "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1,layout=NCHW)", kCompute,
     2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d NCHWc",
     "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1,layout=NCHWc)", kCompute,
     2.0 * 56 * 56 * 9 * 64 * 64},
    // Every output row and column of the two has taps of its own.
    {"conv2d_transpose",
     "Y[n,y,p,x,q,o] = sum(r,s,c) pad(X[n,y-r+p,x-s+q,c], 0) * "
     "W[r*2+1-p,s*2+1-q,c,o] "
     "where n=1, y=28, p=2, x=28, q=2, o=64, r=2, s=2, c=128, "
     "X=f32[1,28,28,128], W=f32[4,4,128,64]",
     kCompute, 2.0 * 28 * 28 * 16 * 128 * 64},
    {"depthwise 3x3", "depthwise_conv2d(n=4,h=112,w=112,c=128,kh=3,kw=3,pad=1)",
     kMemory},
    {"depthwise 3x3 strided",
     "depthwise_conv2d(n=6,h=112,w=112,c=128,kh=3,kw=3,stride=2,pad=1)",
     kMemory},
    {"depthwise bias relu",
     "depthwise_conv2d(n=4,h=112,w=112,c=128,kh=3,kw=3,pad=1,bias=yes,"
     "activation=relu)",
     kMemory},
    {"depthwise NCHW",
     "depthwise_conv2d(n=4,h=112,w=112,c=128,kh=3,kw=3,pad=1,layout=NCHW)",
     kMemory},
    {"pool2d max 3x3 strided",
     "pool2d(n=16,h=112,w=112,c=64,kh=3,kw=3,stride=2,pad=1)", kMemory},
    {"pool2d avg 2x2",
     "pool2d(n=16,h=112,w=112,c=64,kh=2,kw=2,stride=2,kind=avg)", kMemory},
    {"pool2d max NCHW",
     "pool2d(n=16,h=112,w=112,c=64,kh=3,kw=3,stride=2,pad=1,layout=NCHW)",
     kMemory},
    {"pool2d global avg", "pool2d(n=256,h=7,w=7,c=1024,kind=global_avg)",
     kMemory},
    {"pool2d global avg NCHW",
     "pool2d(n=256,h=7,w=7,c=1024,kind=global_avg,layout=NCHW)", kMemory},
    {"softmax", "softmax(rows=8192,cols=1024)", kMemory},
    {"log_softmax", "log_softmax(rows=8192,cols=1000)", kMemory},
    {"layer_norm", "layer_norm(rows=8192,cols=1024)", kMemory},
    {"rms_norm", "rms_norm(rows=8192,cols=1024)", kMemory},
    {"elementwise gelu", "elementwise(shape=8388608,chain=gelu)", kMemory},
    {"elementwise chain", "elementwise(shape=8192x1024,chain=square+relu+sqrt)",
     kMemory},
    {"scale shift relu",
     "Y[i,j] = max(X[i,j] * scale[j] + shift[j], 0) where i=8192, j=1024",
     kMemory},
    {"add broadcast rows", "Y[i,j] = A[i,j] + B[i] where i=8192, j=1024",
     kMemory},
    {"reduce sum inner", "reduce(shape=8192x2048,axes=1)", kMemory},
    {"reduce sum outer", "reduce(shape=8192x2048,axes=0)", kMemory},
    {"reduce max middle", "reduce(shape=64x512x512,axes=1,kind=max)", kMemory},
    {"reduce mean 0x2", "reduce(shape=128x512x256,axes=0x2,kind=mean)",
     kMemory},
    {"reduce sum all", "reduce(shape=16777216,axes=0)", kMemory},
    {"argmax inner", "reduce(shape=8192x2048,axes=1,kind=argmax)", kMemory},
    {"argmax outer", "reduce(shape=8192x2048,axes=0,kind=argmax)", kMemory},
    {"transpose", "transpose(shape=4096x2048,perm=1x0)", kMemory},
    {"transpose odd", "transpose(shape=3000x2500,perm=1x0)", kMemory},
    {"NCHW to NHWC", "transpose(shape=16x128x56x56,perm=0x2x3x1)", kMemory},
    {"NHWC to NCHW", "transpose(shape=16x56x56x128,perm=0x3x1x2)", kMemory},
    {"concat inner", "concat(shape=8192x1024,axis=1,sizes=384x640)", kMemory},
    {"concat outer", "concat(shape=8192x1024,axis=0,sizes=3000x5192)", kMemory},
    {"slice", "slice(shape=8192x1500,begin=17x100,size=8000x1024)", kMemory, 0,
     8000, 4 * 1024, 4 * 1500, 4 * (17 * 1500 + 100)},
    {"slice step 2", "slice(shape=8192x2048,begin=0x0,size=8192x1024,step=1x2)",
     kMemory},
};

}  // namespace

absl::Span<const OperatorRow> OperatorRows() { return kRows; }

}  // namespace regatta::bench

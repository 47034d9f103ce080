#include "tests/bench/operator_rows.h"

namespace regatta::bench {
namespace {

constexpr auto kCompute = OperatorRow::Bound::kCompute;
constexpr auto kMemory = OperatorRow::Bound::kMemory;

constexpr OperatorRow kRows[] = {
    {"matmul", "matmul(m=512,n=512,k=512)", kCompute, 2.0 * 512 * 512 * 512},
    {"batch_matmul",
     "C[b,i,j] = sum(k) A[b,i,k] * B[b,k,j] where b=64, i=128, j=128, k=64",
     kCompute, 2.0 * 64 * 128 * 128 * 64},
    {"dense gelu",
     "acc[i,j] = sum(k) X[i,k] * W[k,j]; Y[i,j] = (acc[i,j] + bias[j]) * 0.5 * "
     "(1 + erf((acc[i,j] + bias[j]) * 0.70710678118654752)) "
     "where i=512, j=512, k=512",
     kCompute, 2.0 * 512 * 512 * 512},
    {"dense relu",
     "acc[i,j] = sum(k) X[i,k] * W[k,j]; Y[i,j] = max(acc[i,j] + bias[j], 0) "
     "where i=256, j=1000, k=512",
     kCompute, 2.0 * 256 * 1000 * 512},
    {"conv2d 3x3", "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1)",
     kCompute, 2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d strided",
     "conv2d(n=1,h=56,w=56,ci=64,co=128,kh=3,kw=3,stride=2,pad=1)", kCompute,
     2.0 * 28 * 28 * 9 * 64 * 128},
    {"conv2d dilated",
     "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=2,dilation=2)", kCompute,
     2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d 1x1", "conv2d(n=1,h=56,w=56,ci=256,co=64,kh=1,kw=1)", kCompute,
     2.0 * 56 * 56 * 256 * 64},
    {"conv2d grouped",
     "Y[n,y,x,g,o] = sum(r,s,c) pad(X[n,y+r-1,x+s-1,g*32+c], 0) * W[r,s,c,g,o] "
     "where n=1, y=56, x=56, g=4, o=32, r=3, s=3, c=32, X=f32[1,56,56,128]",
     kCompute, 2.0 * 56 * 56 * 9 * 32 * 128},
    {"conv2d NCHW",
     "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1,layout=NCHW)", kCompute,
     2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d NCHWc",
     "Y[n,o,y,x,oc] = sum(c,r,s,cc) pad(X[n,c,y+r-1,x+s-1,cc], 0) * "
     "W[o,c,r,s,cc,oc] where n=1, o=4, y=56, x=56, oc=16, c=4, r=3, s=3, "
     "cc=16, X=f32[1,4,56,56,16]",
     kCompute, 2.0 * 56 * 56 * 9 * 64 * 64},
    {"conv2d_transpose",
     "Y[n,y,p,x,q,o] = sum(r,s,c) pad(X[n,y-r+p,x-s+q,c], 0) * "
     "W[r*2+1-p,s*2+1-q,c,o] "
     "where n=1, y=28, p=2, x=28, q=2, o=64, r=2, s=2, c=128, "
     "X=f32[1,28,28,128], W=f32[4,4,128,64]",
     kCompute, 2.0 * 28 * 28 * 16 * 128 * 64},
    {"depthwise 3x3",
     "Y[n,y,x,c] = sum(r,s) pad(X[n,y+r-1,x+s-1,c], 0) * W[r,s,c] "
     "where n=4, y=112, x=112, c=128, r=3, s=3, X=f32[4,112,112,128]",
     kMemory},
    {"depthwise 3x3 strided",
     "Y[n,y,x,c] = sum(r,s) pad(X[n,y*2+r-1,x*2+s-1,c], 0) * W[r,s,c] "
     "where n=6, y=56, x=56, c=128, r=3, s=3, X=f32[6,112,112,128]",
     kMemory},
    {"depthwise NCHW",
     "Y[n,c,y,x] = sum(r,s) pad(X[n,c,y+r-1,x+s-1], 0) * W[c,r,s] "
     "where n=4, y=112, x=112, c=128, r=3, s=3, X=f32[4,128,112,112]",
     kMemory},
    {"pool2d max 3x3 strided",
     "Y[n,y,x,c] = max(r,s) pad(X[n,y*2+r-1,x*2+s-1,c], -3.4e38) "
     "where n=16, y=56, x=56, c=64, r=3, s=3, X=f32[16,112,112,64]",
     kMemory},
    {"pool2d avg 2x2",
     "Y[n,y,x,c] = sum(r,s) X[n,y*2+r,x*2+s,c] * 0.25 "
     "where n=16, y=56, x=56, c=64, r=2, s=2, X=f32[16,112,112,64]",
     kMemory},
    {"pool2d max NCHW",
     "Y[n,c,y,x] = max(r,s) pad(X[n,c,y*2+r-1,x*2+s-1], -3.4e38) "
     "where n=16, y=56, x=56, c=64, r=3, s=3, X=f32[16,64,112,112]",
     kMemory},
    {"pool2d global avg",
     "Y[n,c] = sum(y,x) X[n,y,x,c] * 0.02040816 "
     "where n=256, y=7, x=7, c=1024",
     kMemory},
    {"pool2d global avg NCHW",
     "Y[n,c] = sum(y,x) X[n,c,y,x] * 0.02040816 "
     "where n=256, y=7, x=7, c=1024",
     kMemory},
    {"softmax", "softmax(rows=8192,cols=1024)", kMemory},
    {"log_softmax",
     "M[i] = max(j) X[i,j]; S[i] = sum(j) exp(X[i,j] - M[i]); "
     "L[i] = log(S[i]) + M[i]; Y[i,j] = X[i,j] - L[i] where i=8192, j=1000",
     kMemory},
    {"layer_norm",
     "S[i] = sum(j) X[i,j]; D[i,j] = X[i,j] - S[i] * 0.0009765625; "
     "Q[i] = sum(j) D[i,j] * D[i,j]; R[i] = rsqrt(Q[i] * 0.0009765625 + 1e-5); "
     "Y[i,j] = D[i,j] * R[i] * gamma[j] + beta[j] where i=8192, j=1024",
     kMemory},
    {"rms_norm",
     "Q[i] = sum(j) X[i,j] * X[i,j]; R[i] = rsqrt(Q[i] * 0.0009765625 + 1e-5); "
     "Y[i,j] = X[i,j] * R[i] * gamma[j] where i=8192, j=1024",
     kMemory},
    {"elementwise gelu",
     "Y[i] = X[i] * 0.5 * (1 + erf(X[i] * 0.70710678118654752)) "
     "where i=8388608",
     kMemory},
    {"scale shift relu",
     "Y[i,j] = max(X[i,j] * scale[j] + shift[j], 0) where i=8192, j=1024",
     kMemory},
    {"add broadcast rows", "Y[i,j] = A[i,j] + B[i] where i=8192, j=1024",
     kMemory},
    {"reduce sum inner", "Y[i] = sum(j) X[i,j] where i=8192, j=2048", kMemory},
    {"reduce sum outer", "Y[j] = sum(i) X[i,j] where i=8192, j=2048", kMemory},
    {"reduce max middle", "Y[i,k] = max(j) X[i,j,k] where i=64, j=512, k=512",
     kMemory},
    {"reduce mean 0x2",
     "Y[j] = sum(i,k) X[i,j,k] * 0.00003051757 where i=128, j=512, k=256",
     kMemory},
    {"reduce sum all", "Y[o] = sum(i) X[i] where o=1, i=16777216", kMemory},
    {"argmax inner",
     "M[i] = max(j) X[i,j]; Y[i] = min(j) select(X[i,j] == M[i], j, "
     "select(X[i,j] == X[i,j], 2048, j)) "
     "where i=8192, j=2048, Y=i32[8192]",
     kMemory},
    {"argmax outer",
     "M[j] = max(i) X[i,j]; Y[j] = min(i) select(X[i,j] == M[j], i, "
     "select(X[i,j] == X[i,j], 8192, i)) "
     "where i=8192, j=2048, Y=i32[2048]",
     kMemory},
    {"transpose", "Y[j,i] = X[i,j] where i=4096, j=2048", kMemory},
    {"transpose odd", "Y[j,i] = X[i,j] where i=3000, j=2500", kMemory},
    {"NCHW to NHWC", "Y[n,y,x,c] = X[n,c,y,x] where n=16, c=128, y=56, x=56",
     kMemory},
    {"NHWC to NCHW", "Y[n,c,y,x] = X[n,y,x,c] where n=16, c=128, y=56, x=56",
     kMemory},
    {"concat inner",
     "Y[i,j] = select(j < 384, pad(A[i,j], 0), pad(B[i,j-384], 0)) "
     "where i=8192, j=1024, A=f32[8192,384], B=f32[8192,640]",
     kMemory},
    {"concat outer",
     "Y[i,j] = select(i < 1000, pad(A[i,j], 0), pad(B[i-1000,j], 0)) "
     "where i=8192, j=1024, A=f32[3000,1024], B=f32[5192,1024]",
     kMemory},
    {"slice", "Y[i,j] = X[i+17,j+100] where i=8000, j=1024, X=f32[8192,1500]",
     kMemory, 0, int64_t{4} * 8000 * 1024},
    {"slice step 2", "Y[i,j] = X[i,j*2] where i=8192, j=1024, X=f32[8192,2048]",
     kMemory},
};

}  // namespace

absl::Span<const OperatorRow> OperatorRows() { return kRows; }

}  // namespace regatta::bench

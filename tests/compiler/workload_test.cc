// What a workload is once it was read: shapes, roles, counts, keys.
#include <set>
#include <string>

#include "compiler/expr/parser.h"
#include "compiler/expr/verifier.h"
#include "compiler/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

Workload Parsed(const std::string& text) {
  const auto workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << text << ": " << StatusText(workload);
  return workload.ok() ? *workload : Workload();
}

// The ninth index is not called "i8", which is a type.
TEST(WorkloadTest, ATensorMayHaveAsManyDimensionsAsTheLanguageTakes) {
  std::string shape = "2";
  for (int rank = 2; rank <= 16; ++rank) {
    shape += "x1";
    const Workload workload = Parsed("elementwise(shape=" + shape + ")");
    ASSERT_FALSE(workload.stages.empty());
    EXPECT_EQ(workload.stages[0].indices.size(), static_cast<size_t>(rank));
  }
}

TEST(WorkloadTest, CallAndMathematicsWithOtherNamesHaveOneKey) {
  EXPECT_EQ(Parsed("matmul(m=512,n=256,k=128)").key,
            Parsed("out[row,col] = sum(inner) left[row,inner] * "
                   "right[inner,col] where inner=128, col=256, row=512")
                .key);
  EXPECT_EQ(Parsed("softmax(rows=4,cols=8)").key,
            Parsed("peak[r]=max(c) in[r,c];e[r,c]=exp(in[r,c]-peak[r]);"
                   "total[r]=sum(c)e[r,c];p[r,c]=e[r,c]/total[r] "
                   "where r=4,c=8")
                .key);
  EXPECT_EQ(Parsed("conv2d(n=1,h=6,w=6,ci=3,co=4,kh=3,kw=3,pad=1)").key,
            Parsed("O[b,p,q,f] = sum(u,v,d) pad(I[b,u+p-1,q-1+v,d], 0.0) * "
                   "K[u,v,d,f] where b=1,p=6,q=6,f=4,u=3,v=3,d=3,"
                   "I=f32[1,6,6,3]")
                .key);
  EXPECT_EQ(Parsed("matmul(m=2,n=3,k=4,dtype=f16)").key,
            Parsed("C[i,j] = sum(k) A[i,k] * B[k,j] where i=2,j=3,k=4,"
                   "dtype=f16")
                .key);
  EXPECT_EQ(Parsed("matmul(m=2,n=3,k=4,dtype=i8)").key,
            Parsed("C[i,j] = sum(k) i32(A[i,k]) * i32(B[k,j]) "
                   "where i=2,j=3,k=4,dtype=i8,C=i32[2,3]")
                .key);
}

TEST(WorkloadTest, WhateverChangesTheComputationChangesTheKey) {
  const std::set<std::string> keys = {
      Parsed("matmul(m=4,n=4,k=4)").key,
      Parsed("matmul(m=5,n=4,k=4)").key,
      Parsed("matmul(m=4,n=5,k=4)").key,
      Parsed("matmul(m=4,n=4,k=5)").key,
      Parsed("matmul(m=4,n=4,k=4,dtype=f16)").key,
      Parsed("matmul(m=4,n=4,k=4,dtype=f16,out_dtype=f32)").key,
      Parsed("matmul(m=4,n=4,k=4,dtype=bf16)").key,
      Parsed("C[i,j] = sum(k) A[i,k] * B[j,k] where i=4,j=4,k=4").key,
      Parsed("C[i,j] = max(k) A[i,k] * B[k,j] where i=4,j=4,k=4").key,
      Parsed("C[i,j] = sum(k) A[i,k] + B[k,j] where i=4,j=4,k=4").key,
      Parsed("C[i,j] = sum(k) A[i,k] * A[k,j] where i=4,j=4,k=4").key};
  EXPECT_EQ(keys.size(), 11u);
}

TEST(WorkloadTest, KeysAreStableAcrossReleases) {
  // The log is keyed by these: a changed value orphans every record.
  const Workload workload = Parsed("matmul(m=512,n=512,k=512)");
  EXPECT_EQ(workload.canonical,
            "t2[i0,i1] = sum(i2) t0[i0,i2] * t1[i2,i1] where i0=512, i1=512, "
            "i2=512, t0=f32[512,512], t1=f32[512,512], t2=f32[512,512]");
  EXPECT_EQ(workload.key, "8c2f1499efeaa5c2ee860deaab79cc02");
}

TEST(WorkloadTest, CallsAreNormalised) {
  EXPECT_EQ(
      Parsed(" matmul( k = 7,m=5 , n=006, dtype=f32, out_dtype=auto ) ").text,
      "matmul(m=5,n=6,k=7)");
  EXPECT_EQ(Parsed("matmul(m=5,n=6,k=7,dtype=f16,out_dtype=f16)").text,
            "matmul(m=5,n=6,k=7,dtype=f16)");
  EXPECT_EQ(Parsed("matmul(m=5,n=6,k=7,out_dtype=i32,dtype=i8)").text,
            "matmul(m=5,n=6,k=7,dtype=i8)");
  EXPECT_EQ(Parsed("conv2d(n=1,h=8,w=8,ci=2,co=3,kh=3,kw=3,stride=1,pad=1,"
                   "layout=NHWC,dilation=1)")
                .text,
            "conv2d(n=1,h=8,w=8,ci=2,co=3,kh=3,kw=3,pad=1)");
}

TEST(WorkloadTest, EverySampleParsesAndItsTextParsesBackToIt) {
  for (const Op& op : Ops()) {
    ASSERT_FALSE(op.samples.empty()) << op.name;
    for (const std::string& sample : op.samples) {
      const Workload workload = Parsed(sample);
      EXPECT_EQ(workload.family, op.name);
      EXPECT_EQ(workload.text, sample) << "samples are written normalised";
      const Workload again = Parsed(workload.text);
      EXPECT_EQ(again.key, workload.key);
      EXPECT_EQ(again.text, workload.text);
      // The canonical form is an expression of its own.
      const auto canonical = ParseExpression(workload.canonical);
      ASSERT_STATUS_OK(canonical);
      EXPECT_EQ(canonical->canonical, workload.canonical);
      EXPECT_TRUE(VerifyWorkload(workload).ok());
    }
  }
}

TEST(WorkloadTest, InputsComeInOrderOfFirstUseThenAssignedTensors) {
  const Workload workload = Parsed(
      "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = max(C[i,j] + bias[j], 0) "
      "where i=3, j=4, k=5");
  std::vector<std::string> names;
  for (const TensorDecl& tensor : workload.tensors)
    names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"A", "B", "bias", "C", "D"}));
  EXPECT_EQ(workload.TensorsWithRole(TensorRole::kInput),
            (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(workload.TensorsWithRole(TensorRole::kInternal),
            (std::vector<int>{3}));
  EXPECT_EQ(workload.TensorsWithRole(TensorRole::kOutput),
            (std::vector<int>{4}));
  EXPECT_EQ(workload.tensors[0].shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(workload.tensors[2].shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(workload.tensors[4].shape, (std::vector<int64_t>{3, 4}));
}

TEST(WorkloadTest, UnboundTensorsGetTheSmallestShapeThatIsRead) {
  const Workload workload =
      Parsed("Y[x] = sum(r) X[2*x+3*r] + X[x+40] where x=5, r=4");
  EXPECT_EQ(workload.tensors[0].shape, (std::vector<int64_t>{45}));
}

TEST(WorkloadTest, OperationsAndBytesAreCounted) {
  const Workload matmul = Parsed("matmul(m=512,n=512,k=512)");
  EXPECT_EQ(matmul.Flops(), 2.0 * 512 * 512 * 512);
  EXPECT_EQ(matmul.Bytes(), 3.0 * 512 * 512 * 4);
  const Workload conv =
      Parsed("conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1)");
  EXPECT_EQ(conv.Flops(), 2.0 * 56 * 56 * 64 * 64 * 9);
  EXPECT_EQ(conv.Bytes(), 4.0 * (2 * 56 * 56 * 64 + 9 * 64 * 64));
  // max, subtract and exp, sum, divide.
  EXPECT_EQ(Parsed("softmax(rows=256,cols=1024)").Flops(), 5.0 * 256 * 1024);
  EXPECT_EQ(Parsed("matmul(m=2,n=3,k=4,dtype=f16)").Flops(), 48);
}

TEST(WorkloadTest, ConvolutionSizesFollowStridePaddingAndDilation) {
  const Workload workload = Parsed(
      "conv2d(n=2,h=13,w=10,ci=7,co=9,kh=3,kw=5,stride=2,pad=2,dilation=2)");
  // (13 + 4 - 5) / 2 + 1 and (10 + 4 - 9) / 2 + 1.
  EXPECT_EQ(workload.tensors.back().shape, (std::vector<int64_t>{2, 7, 3, 9}));
  EXPECT_EQ(workload.tensors[0].shape, (std::vector<int64_t>{2, 13, 10, 7}));
  const Workload channels_first = Parsed(
      "conv2d(n=2,h=13,w=10,ci=7,co=9,kh=3,kw=5,stride=2,pad=2,dilation=2,"
      "layout=NCHW)");
  EXPECT_EQ(channels_first.tensors.back().shape,
            (std::vector<int64_t>{2, 9, 7, 3}));
}

TEST(WorkloadTest, FamiliesOfTypedExpressions) {
  EXPECT_EQ(Parsed("C[i] = sum(k) A[i,k] * v[k] where i=2,k=2").family,
            "contraction");
  EXPECT_EQ(Parsed("C[i] = sum(k) A[i,k] where i=2,k=2").family, "reduction");
  EXPECT_EQ(Parsed("C[i] = A[i] * 2 where i=2").family, "elementwise");
  EXPECT_EQ(Parsed("C[i] = sum(k) A[i,k] * v[k]; D[i] = C[i] * 2 "
                   "where i=2,k=2,dtype=bf16")
                .family,
            "contraction");
}

TEST(WorkloadTest, SumsAreKeptInTheAccumulatorTypeOfTheirOperands) {
  EXPECT_EQ(Parsed("matmul(m=2,n=2,k=2,dtype=f16)").stages[0].accumulator,
            DType::kF32);
  EXPECT_EQ(Parsed("matmul(m=2,n=2,k=2,dtype=i8)").stages[0].accumulator,
            DType::kI32);
  const Workload narrow =
      Parsed("S[i] = sum(k) A[i,k] where i=2,k=2,dtype=f16");
  EXPECT_EQ(narrow.stages[0].value->kind, Expr::Kind::kCast);
  EXPECT_EQ(narrow.stages[0].value->dtype, narrow.stages[0].accumulator);
}

TEST(VerifierTest, RefusesWhatNoParserWouldBuild) {
  Workload workload = Parsed("C[i] = sum(k) A[i,k] where i=2,k=3");
  workload.indices[1].extent = 4;
  EXPECT_THAT(StatusText(VerifyWorkload(workload)), HasSubstr("stage 'C'"));
  workload = Parsed("C[i] = sum(k) A[i,k] where i=2,k=3");
  workload.indices[0].extent = 0;
  EXPECT_THAT(StatusText(VerifyWorkload(workload)), HasSubstr("index 'i'"));
  workload = Parsed("C[i] = sum(k) A[i,k] where i=2,k=3");
  workload.stages.push_back(workload.stages[0]);
  EXPECT_THAT(StatusText(VerifyWorkload(workload)), HasSubstr("twice"));
  EXPECT_THAT(StatusText(VerifyWorkload(Workload())), HasSubstr("no stage"));
}

}  // namespace
}  // namespace regatta

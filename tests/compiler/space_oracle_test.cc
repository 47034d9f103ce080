// Whatever a schedule says, the result is the interpreter's.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "compiler/ops/op.h"
#include "gtest/gtest.h"
#include "tests/compiler/space_support.h"

namespace regatta {
namespace {

// Legal schedules of one workload against the interpreter: the seeds first,
// then random ones until `count` are done or four times as many were drawn.
// Returns how many distinct ones ran.
int CheckSchedules(const std::string& workload, const std::string& target,
                   int count, int threads = 1) {
  const Space space = SpaceOf(workload, target, threads);
  const Oracle oracle(space.context().workload);
  std::set<Schedule> seen;
  const auto check = [&](const Schedule& schedule) {
    if (static_cast<int>(seen.size()) >= count ||
        !seen.insert(schedule).second) {
      return;
    }
    ASSERT_EQ(space.Refusal(schedule), std::nullopt) << space.Print(schedule);
    ASSERT_TRUE(oracle.Agrees(space, schedule));
  };
  for (const Schedule& schedule : space.Seeds()) check(schedule);
  Random random(7);
  for (int i = 0; i < 4 * count && !testing::Test::HasFatalFailure(); ++i) {
    const std::optional<Schedule> schedule = space.Sample(random);
    EXPECT_TRUE(schedule.has_value()) << workload;
    if (schedule) check(*schedule);
  }
  return static_cast<int>(seen.size());
}

// At least 150 schedules per operator must have run at the default scale.
void ExpectEnough(int checked) {
  std::printf("%d schedules checked\n", checked);
  EXPECT_GE(checked, std::min(150, Scaled(150)));
}

TEST(SpaceOracleTest, MatmulSchedulesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"matmul(m=13,n=37,k=29)", "matmul(m=1,n=1,k=1)", "matmul(m=1,n=70,k=9)",
        "matmul(m=40,n=1,k=21)", "matmul(m=1,n=1,k=33)",
        "matmul(m=64,n=64,k=64)", "matmul(m=31,n=48,k=130)"}) {
    checked += CheckSchedules(workload, kAvx512, Scaled(40));
  }
  // The shape of the issue; slow, so few of it here.
  checked += CheckSchedules("matmul(m=127,n=193,k=511)", kAvx512, Scaled(2));
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, ConvolutionSchedulesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"conv2d(n=1,h=8,w=9,ci=6,co=20,kh=3,kw=3,stride=1,pad=1)",
        "conv2d(n=2,h=7,w=11,ci=3,co=5,kh=3,kw=3)",
        "conv2d(n=1,h=9,w=10,ci=5,co=9,kh=3,kw=5,stride=2,pad=2)",
        "conv2d(n=1,h=9,w=8,ci=4,co=6,kh=3,kw=3,pad=2,dilation=2)",
        "conv2d(n=1,h=6,w=6,ci=17,co=18,kh=1,kw=1)",
        "conv2d(n=1,h=7,w=7,ci=4,co=8,kh=1,kw=1,stride=2)",
        "conv2d(n=1,h=1,w=1,ci=1,co=1,kh=1,kw=1)",
        "conv2d(n=1,h=5,w=1,ci=2,co=3,kh=3,kw=1,pad=1)",
        "conv2d(n=2,h=9,w=20,ci=5,co=4,kh=3,kw=2,stride=1,pad=1,layout=NCHW)",
        "conv2d(n=1,h=7,w=9,ci=3,co=7,kh=3,kw=3,stride=2,pad=1,"
        "layout=NCHW)"}) {
    checked += CheckSchedules(workload, kAvx512, Scaled(20));
  }
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, SchedulesOfProductsAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"matmul(m=17,n=35,k=29,dtype=i8)", "matmul(m=1,n=21,k=9,dtype=i8)",
        "matmul(m=12,n=33,k=70,dtype=bf16,out_dtype=f32)",
        "dense(m=9,n=19,k=21,dtype=i8,out_dtype=i8)",
        "batch_matmul(b=3,m=7,n=21,k=13,dtype=i8)",
        "conv2d(n=1,h=8,w=7,ci=5,co=20,kh=3,kw=3,pad=1,dtype=i8)",
        "conv2d(n=1,h=7,w=11,ci=6,co=9,kh=3,kw=3,stride=2,pad=1,dtype=i8,"
        "layout=NCHW)"}) {
    checked += CheckSchedules(workload, kVnni, Scaled(20));
    checked += CheckSchedules(workload, kMatrixNeon, Scaled(30));
  }
  checked += CheckSchedules("matmul(m=17,n=35,k=29)", kMatrixNeon, Scaled(20));
  checked += CheckSchedules("matmul(m=17,n=40,k=64,dtype=i8)", kMatrixNeon,
                            Scaled(20), /*threads=*/2);
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, MatrixTilesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"matmul(m=19,n=37,k=29,dtype=f16)", "matmul(m=48,n=40,k=64,dtype=f16)",
        "matmul(m=17,n=32,k=70,dtype=i8)", "matmul(m=32,n=48,k=64,dtype=i8)",
        "matmul(m=2,n=1,k=1,dtype=f16)",
        "dense(m=9,n=20,k=24,dtype=i8,out_dtype=i8)",
        "batch_matmul(b=3,m=7,n=21,k=13,dtype=f16)",
        // Operands the other way round.
        "C[i,j] = sum(k) A[k,i] * B[j,k] where i=24, j=18, k=33, dtype=f16",
        "C[i,j] = sum(k) A[k,i] * B[k,j] where i=24, j=16, k=40, dtype=i8, "
        "C=i32[24,16]",
        // Columns of several indices, and what follows.
        "C[i,a,j] = sum(k) A[i,k] * B[a,k,j]; D[i,a,j] = max(C[i,a,j] + c[j], "
        "0) where i=18, a=3, j=10, k=20, dtype=f16",
        "conv2d(n=2,h=5,w=7,ci=6,co=10,kh=3,kw=3,pad=1,dtype=f16)",
        "conv2d(n=1,h=7,w=6,ci=8,co=9,kh=3,kw=2,stride=2,pad=1,dtype=i8)",
        "conv2d(n=1,h=6,w=9,ci=4,co=8,kh=3,kw=3,pad=1,dtype=f16,"
        "layout=NCHW)"}) {
    checked += CheckSchedules(workload, kSm80, Scaled(10));
    checked += CheckSchedules(workload, kSm75, Scaled(6));
  }
  checked += CheckSchedules("matmul(m=20,n=36,k=48,dtype=bf16,out_dtype=f32)",
                            kSm80, Scaled(10));
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, SoftmaxSchedulesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"softmax(rows=5,cols=67)", "softmax(rows=1,cols=100)",
        "softmax(rows=9,cols=1)", "softmax(rows=1,cols=1)",
        "softmax(rows=16,cols=128)"}) {
    checked += CheckSchedules(workload, kAvx512, Scaled(50));
  }
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, WindowSchedulesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {// Depthwise, channels last: padding, strides, dilation, what follows.
        "Y[n,y,x,c] = sum(r,s) pad(X[n,y+r-1,x+s-1,c], 0) * W[r,s,c] where "
        "n=2, y=7, x=9, c=19, r=3, s=3, X=f32[2,7,9,19]",
        "Y[y,x,c] = sum(r,s) pad(X[y*2+r-1,x*2+s-2,c], 0) * W[r,s,c]; "
        "Z[y,x,c] = max(Y[y,x,c] + b[c], 0) where y=5, x=6, c=33, r=3, s=5, "
        "X=f32[9,11,33]",
        "Y[y,x,c] = max(r,s) pad(X[y+r*2-2,x+s*2-2,c], -1000) where y=6, x=5, "
        "c=4, r=3, s=3, X=f32[6,5,4]",
        // Channels first: lanes along the window.
        "Y[c,y,x] = sum(r,s) pad(X[c,y+r-1,x+s-1], 0) * W[c,r,s] where c=3, "
        "y=8, x=37, r=3, s=3, X=f32[3,8,37]",
        "Y[c,y,x] = max(r,s) X[c,y*2+r,x*2+s] where c=3, y=5, x=20, r=2, s=2",
        // One dimension; padding wider than the tensor.
        "Y[x] = sum(s) pad(X[x+s-4], 1) where x=9, s=9, X=f32[3]",
        "Y[x,c] = min(s) X[x*3+s,c] where x=7, s=2, c=1"}) {
    checked += CheckSchedules(workload, kAvx512, Scaled(30));
  }
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, TransposeSchedulesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"Y[j,i] = X[i,j] where i=37, j=50", "Y[j,i] = X[i,j] where i=64, j=80",
        "Y[n,x,c] = X[n,c,x] where n=3, c=5, x=33",
        "Y[l,j,k,i] = X[i,j,k,l] where i=3, j=4, k=5, l=18",
        "Y[j,i] = X[i,j] * 2 + Z[i,j] - b[i] where i=19, j=21",
        "Y[j,i] = X[i,j] + Z[j,i] where i=3, j=40"}) {
    checked += CheckSchedules(workload, kAvx512, Scaled(60));
  }
  ExpectEnough(checked);
}

TEST(SpaceOracleTest, FoldSchedulesAgreeWithTheInterpreter) {
  int checked = 0;
  for (const char* workload :
       {"Y[j] = sum(i) X[i,j] where i=19, j=37",
        "Y[i,k] = max(j) X[i,j,k] where i=3, j=17, k=21",
        "Y[j] = sum(i,k) X[i,j,k] * 0.5 where i=5, j=9, k=33",
        "Y[j,l] = prod(i,k) X[i,j,k,l] where i=3, j=4, k=2, l=18",
        "Y[j] = sum(i) X[i,j] where i=9, j=33, dtype=f16",
        "M[j] = max(i) X[i,j]; Y[j] = min(i) select(X[i,j] == M[j], i, 13) "
        "where i=13, j=20, Y=i32[20]"}) {
    checked += CheckSchedules(workload, kAvx512, Scaled(40));
  }
  ExpectEnough(checked);
}

// A check that cannot fail proves nothing.
TEST(SpaceOracleTest, BrokenLoopsAreNoticed) {
  const Space space = SpaceOf("matmul(m=13,n=37,k=29)");
  const Oracle oracle(space.context().workload);
  const loop::Program good = space.Emit(space.Default());
  ASSERT_TRUE(oracle.Agrees(good, "good"));
  // The tail left out: its elements are never written.
  loop::Program cut = good;
  ASSERT_EQ(cut.kernels.back().body->kind, loop::Stmt::Kind::kBlock);
  auto body = std::make_shared<loop::Stmt>(*cut.kernels.back().body);
  body->body.pop_back();
  cut.kernels.back().body = body;
  EXPECT_FALSE(oracle.Agrees(cut, "cut"));
  // Out of bounds: the verifier's part.
  loop::Program other = good;
  std::swap(other.buffers[0].elements, other.buffers[1].elements);
  EXPECT_FALSE(oracle.Agrees(other, "inputs of the wrong sizes"));
}

// Structures that no operator has today: rules must cover whatever the grammar
// can say.
constexpr const char* kExpressions[] = {
    // Elementwise, scalars, transposes, stencils, index values.
    "C[i,j] = A[i,j] + 1 where i=7, j=45",
    "C[i,j] = A[j,i] * 2 where i=13, j=21",
    "C[i] = 3 where i=1",
    "C[i,j] = select(i < j, A[i,j], f32(j)) where i=9, j=17",
    "C[i,j] = pad(A[i-1,j+1], 0.5) + pad(A[i+1,j-2], -1) where i=6, j=33, "
    "A=f32[6,33]",
    "C[i,j,l] = A[i,j,l] - B[j] where i=3, j=5, l=19",
    "C[i] = A[2*i+1] where i=40",
    // Reductions of every kind.
    "C[i] = max(j) A[i,j] where i=11, j=37",
    "C[j] = sum(i) A[i,j] where i=11, j=37",
    "C[i] = prod(j) A[i,j] where i=4, j=9",
    "C[i] = min(j,k) abs(A[i,j,k]) where i=4, j=9, k=20",
    "C[i] = sum(i2,j) A[i2,j] * f32(i) where i=3, i2=5, j=18",
    "C[o] = sum(j) A[j] where o=1, j=100",
    "C[y,x,c] = max(r,s) pad(X[2*y+r-1,2*x+s-1,c], -inf) where y=4, x=5, c=18, "
    "r=3, s=3, X=f32[8,10,18]",
    "C[i,j] = sum(k) abs(A[i,k] - B[k,j]) where i=9, j=20, k=15",
    // Contractions of every shape.
    "C[i,j] = sum(k) A[i,k] * B[j,k] where i=19, j=37, k=25",
    "C[i,j] = sum(k) A[k,i] * B[k,j] where i=19, j=37, k=25",
    "C[j,i] = sum(k) A[i,k] * B[k,j] where i=19, j=37, k=25",
    "C[b,i,j] = sum(k) A[b,i,k] * B[b,k,j] where b=3, i=12, j=34, k=11",
    "C[i,j,b] = sum(k) A[i,k,b] * B[k,j,b] where b=18, i=7, j=5, k=6",
    "C[n,y,x,c] = sum(r,s) pad(X[n,y+r-1,x+s-1,c],0) * W[r,s,c] where n=1, "
    "y=6, "
    "x=7, c=21, r=3, s=3, X=f32[1,6,7,21]",
    "C[x,o] = sum(s,c) X[x+s,c] * W[s,c,o] where x=23, s=5, c=4, o=19",
    "C[i,j] = sum(k,l) A[i,k,l] * B[l,k,j] where i=9, j=33, k=7, l=6",
    "C[i,j] = sum(k,l) A[i,k] * B[l,j] where i=9, j=33, k=7, l=6",
    "C[i,j] = sum(p,q,r,s) A[i,p,q,r,s] * B[s,r,q,p,j] where i=8, j=18, p=2, "
    "q=3, r=4, s=5",
    "C[i,j] = sum(k) A[i,k] * A[j,k] where i=20, j=20, k=9",
    "C[i,j1,j2] = sum(k) A[i,k] * B[k,j1,j2+j1] where i=9, j1=3, j2=20, k=8",
    "C[i] = sum(k) A[i,k] * x[k] where i=50, k=33",
    "C[i,j] = sum(k) i32(A[i,k]) * i32(B[k,j]) where i=17, j=19, k=23, "
    "A=i8[17,23], B=i8[23,19], C=i32[17,19]",
    "C[i,j] = sum(k) f32(A[i,k]) * f32(B[k,j]) where i=17, j=19, k=23, "
    "dtype=f16",
    // Stages that follow and precede.
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = max(C[i,j] + bias[j], 0) where "
    "i=17, j=40, k=30",
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = C[i,j] * sigmoid(C[i,j]); "
    "E[i,j] = D[i,j] + C[i,j] where i=9, j=40, k=30",
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = C[i,j] + 1; "
    "E[j] = sum(i) D[i,j] where i=9, j=40, k=30",
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,l] = sum(j) C[i,j] * G[j,l] where "
    "i=9, j=20, k=30, l=18",
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = f32(i) + C[i,j] where i=9, "
    "j=20, "
    "k=30, A=f16[9,30], B=f16[30,20], C=f16[9,20], D=f32[9,20]",
    "C[y,x,o] = sum(r,s,c) pad(X[y+r-1,x+s-1,c],0) * W[r,s,c,o]; "
    "D[y,x,o] = max(C[y,x,o] * g[o] + b[o], 0) where y=5, x=9, o=20, r=3, s=3, "
    "c=7, X=f32[5,9,7]",
    "S[i] = sum(j) A[i,j]; D[i,j] = A[i,j] - S[i] * 0.01; Q[i] = sum(j) "
    "D[i,j] * D[i,j]; Y[i,j] = D[i,j] * rsqrt(Q[i] + 1) where i=6, j=50",
    "E[i,j] = A[i,j] + 1; C[j] = max(i) E[i,j] where i=8, j=30",
    // Positions that run on from row to row.
    "Y[i,j] = X[(18*i+j)/7,(18*i+j)%7] where i=7, j=18, X=f32[18,7]",
    "Y[i] = X[i/20,i/5%4,i%5] * 2 where i=60, X=f32[3,4,5]",
    "Y[i] = X[i/4,i/4%1,i%4] where i=8, X=f32[2,1,4]",
    "Y[i] = X[(i+1)/5,(i+1)%5] where i=4, X=f32[1,5]",
    "Y[i,j] = pad(X[(i+j-3)/6,(i+j-3)%6], 0.5) where i=9, j=20, X=f32[3,6]",
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[y] = C[(y+3)/20,(y+3)%20] where i=9, "
    "j=20, k=7, y=170",
    "E[i,j] = A[i,j] + 1; S[i] = sum(r) E[(r+30*i)/30,(r+30*i)%30] where i=8, "
    "j=30, r=30",
    "C[i,j] = sum(k) A[(i*9+k)/3,(i*9+k)%3] * B[k,j] where i=8, j=20, k=9, "
    "A=f32[24,3]",
    "T[q,f,c] = X[q,f,c] + 1; Y[y,c] = T[(y+1)/3,(y+1)%3,c] * b[c] where q=4, "
    "f=3, c=18, y=10",
};

TEST(SpaceOracleTest, AnyExpressionAgreesWithTheInterpreter) {
  for (const char* target : {kAvx512, kAvx2, kNeon}) {
    for (const char* workload : kExpressions) {
      CheckSchedules(workload, target, Scaled(8));
    }
  }
}

// Groups and threads, on shapes that no tile divides.
TEST(SpaceOracleTest, DeviceSchedulesAgreeWithTheInterpreter) {
  for (const char* target : {kMali, kPocl}) {
    for (const char* workload : kExpressions) {
      CheckSchedules(workload, target, Scaled(6));
    }
    for (const char* workload :
         {"matmul(m=13,n=37,k=29)", "matmul(m=40,n=48,k=70)",
          "matmul(m=1,n=70,k=9)", "matmul(m=40,n=1,k=21)",
          "dense(m=9,n=20,k=30,activation=gelu)", "softmax(rows=5,cols=67)",
          "conv2d(n=2,h=7,w=9,ci=3,co=20,kh=3,kw=3,stride=2,pad=1)",
          "conv2d(n=1,h=9,w=10,ci=5,co=8,kh=3,kw=3,pad=1,layout=NCHW)"}) {
      CheckSchedules(workload, target, Scaled(20));
    }
  }
}

TEST(SpaceOracleTest, ParallelSchedulesAgreeWithTheInterpreter) {
  for (const char* workload : kExpressions) {
    CheckSchedules(workload, kAvx2, Scaled(10), /*threads=*/2);
  }
  for (const char* workload :
       {"matmul(m=61,n=96,k=40)", "matmul(m=1,n=300,k=20)",
        "conv2d(n=2,h=7,w=9,ci=3,co=20,kh=3,kw=3,stride=1,pad=1)",
        "softmax(rows=9,cols=40)"}) {
    CheckSchedules(workload, kAvx512, Scaled(30), /*threads=*/4);
  }
}

// Every sample call of every operator, so that a new operator is covered.
TEST(SpaceOracleTest, OperatorSamplesAgreeWithTheInterpreter) {
  for (const Op& op : Ops()) {
    for (const std::string& sample : op.samples) {
      if (WorkloadOf(sample).Flops() > 1e6) continue;  // slow to interpret
      CheckSchedules(sample, kAvx512, Scaled(6));
      CheckSchedules(sample, kMali, Scaled(3));
    }
  }
}

}  // namespace
}  // namespace regatta

#include "compiler/space/simplify.h"

#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "gtest/gtest.h"
#include "tests/compiler/space_support.h"

namespace regatta {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

Shapes ShapesOf(const Workload& workload) {
  Shapes shapes;
  for (const TensorDecl& tensor : workload.tensors) {
    shapes.push_back(tensor.shape);
  }
  return shapes;
}

TEST(SimplifyTest, ShapesAreThoseExpected) {
  const struct {
    const char* workload;
    Shapes shapes;  // inputs, then assigned tensors
  } kCases[] = {
      {"C[i,j] = A[i,j] + 1 where i=3, j=4", {{12}, {12}}},
      // j must stay: the bias runs over it alone.
      {"C[n,i,j] = A[n,i,j] + b[j] where n=2, i=3, j=4", {{6, 4}, {4}, {6, 4}}},
      {"C[i,j] = A[j,i] where i=3, j=4", {{4, 3}, {3, 4}}},
      // An index as a number cannot be merged away.
      {"C[i,j] = A[i,j] * f32(j) where i=3, j=4", {{3, 4}, {3, 4}}},
      // Part of a tensor only: the outer dimension may be cut short, the inner
      // one not.
      {"C[i,j] = A[i,j] where i=3, j=4, A=f32[5,4]", {{20}, {12}}},
      {"C[i,j] = A[i,j] where i=3, j=4, A=f32[3,5]", {{3, 5}, {3, 4}}},
      // Units go, also of reductions.
      {"matmul(m=1,n=5,k=7)", {{7}, {7, 5}, {5}}},
      {"matmul(m=1,n=1,k=1)", {{}, {}, {}}},
      {"matmul(m=4,n=5,k=1)", {{4}, {5}, {4, 5}}},
      // A pointwise convolution is a matrix product.
      {"conv2d(n=1,h=5,w=6,ci=3,co=7,kh=1,kw=1)", {{30, 3}, {3, 7}, {30, 7}}},
      // Windows keep their dimensions.
      {"conv2d(n=1,h=5,w=6,ci=3,co=7,kh=3,kw=3)",
       {{5, 6, 3}, {3, 3, 3, 7}, {3, 4, 7}}},
      {"C[i] = sum(p,q) A[i,p,q] * B[p,q] where i=3, p=4, q=5",
       {{3, 20}, {20}, {3}}},
      // A dimension of size one that is read with padding stays.
      {"C[i] = pad(A[i-1], 0) where i=3, A=f32[1]", {{1}, {3}}},
      {"E[i,j] = A[i,j] + 1; S[i] = sum(j) E[i,j] where i=3, j=4",
       {{3, 4}, {3, 4}, {3}}},
      {"softmax(rows=1,cols=9)", {{9}, {}, {9}, {}, {9}}},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ShapesOf(Simplify(WorkloadOf(c.workload))), c.shapes)
        << c.workload;
  }
}

TEST(SimplifyTest, TheResultIsTheSame) {
  for (const char* text :
       {"matmul(m=4,n=5,k=6)", "matmul(m=1,n=5,k=1)",
        "conv2d(n=2,h=5,w=6,ci=3,co=4,kh=1,kw=1)",
        "conv2d(n=1,h=5,w=6,ci=1,co=4,kh=3,kw=1,pad=1)",
        "softmax(rows=3,cols=1)",
        "C[i,j,k] = A[i,j,k] * B[j,k] where i=2, j=3, "
        "k=4",
        "C[i] = sum(p,q) A[i,p,q] * B[q,p] where i=3, p=4, q=5",
        "E[i,j] = A[i,j] + f32(j); S[i] = sum(j) E[i,j] where i=3, j=4"}) {
    const Workload workload = WorkloadOf(text);
    const Workload simple = Simplify(workload);
    const std::vector<TensorValues> inputs = RandomInputs(workload, 5);
    const auto want = Interpret(workload, inputs);
    const auto got = Interpret(simple, inputs);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(want[i].size(), got[i].size());
      for (size_t e = 0; e < want[i].size(); ++e) {
        EXPECT_NEAR(want[i][e], got[i][e], 1e-6) << text;
      }
    }
  }
}

TEST(SimplifyTest, ItIsIdempotent) {
  for (const char* text : {"matmul(m=4,n=1,k=6)", "softmax(rows=3,cols=7)",
                           "conv2d(n=1,h=5,w=6,ci=3,co=4,kh=3,kw=3,pad=1)"}) {
    const Workload once = Simplify(WorkloadOf(text));
    EXPECT_EQ(ShapesOf(Simplify(once)), ShapesOf(once)) << text;
  }
}

}  // namespace
}  // namespace regatta

// The oracle against loops written by hand.
#include "compiler/interp/interpreter.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compiler/module/half.h"
#include "compiler/ops/op.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

Workload Parsed(const std::string& text) {
  const auto workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << text << ": " << StatusText(workload);
  return workload.ok() ? *workload : Workload();
}

TensorValues RandomValues(int64_t elements, DType type, Random& random) {
  TensorValues values(elements);
  for (double& value : values) {
    value = IsFloat(type) ? RoundToDType(random.Unit() * 2 - 1, type)
                          : static_cast<double>(random.Below(256)) - 128;
  }
  return values;
}

// The one element that a stage without tensors computes.
double Scalar(const std::string& value, const std::string& more = "") {
  const Workload workload =
      Parsed(absl::StrCat("C[i] = ", value, " where i=1", more));
  return Interpret(workload, {})[0][0];
}

TEST(InterpreterTest, ScalarsFollowTheUsualRules) {
  EXPECT_EQ(Scalar("1 - 2 - 3"), -4);
  EXPECT_EQ(Scalar("1 - (2 - 3)"), 2);
  EXPECT_EQ(Scalar("2 + 3 * 4"), 14);
  EXPECT_EQ(Scalar("(2 + 3) * 4"), 20);
  EXPECT_EQ(Scalar("8 / 4 / 2"), 1);
  EXPECT_EQ(Scalar("8 / 4 * 2"), 4);
  EXPECT_EQ(Scalar("-2 * 3 + 1"), -5);
  EXPECT_EQ(Scalar("-(2 - 5)"), 3);
  EXPECT_EQ(Scalar("max(2, 3) - min(2, 3)"), 1);
  EXPECT_EQ(Scalar("select(1 < 2, 10, 20)"), 10);
  EXPECT_EQ(Scalar("select(2 <= 1, 10, 20)"), 20);
  EXPECT_EQ(Scalar("select(2 > 1, 10, 20)"), 10);
  EXPECT_EQ(Scalar("select(1 >= 2, 10, 20)"), 20);
  EXPECT_EQ(Scalar("select(2 == 2, 10, 20)"), 10);
  EXPECT_EQ(Scalar("i + 7"), 7);
}

TEST(InterpreterTest, FunctionsAreTheMathematicalOnes) {
  EXPECT_NEAR(Scalar("exp(1)"), 2.718281828, 1e-6);
  EXPECT_NEAR(Scalar("log(10)"), 2.302585093, 1e-6);
  EXPECT_EQ(Scalar("sqrt(9)"), 3);
  EXPECT_EQ(Scalar("rsqrt(4)"), 0.5);
  EXPECT_NEAR(Scalar("tanh(0.5)"), 0.462117157, 1e-6);
  EXPECT_NEAR(Scalar("sigmoid(2)"), 0.880797078, 1e-6);
  EXPECT_NEAR(Scalar("erf(0.5)"), 0.520499878, 1e-6);
  EXPECT_EQ(Scalar("abs(-3)"), 3);
  EXPECT_EQ(Scalar("floor(-1.5)"), -2);
  EXPECT_EQ(Scalar("round(2.5)"), 2);
  EXPECT_EQ(Scalar("round(3.5)"), 4);
}

TEST(InterpreterTest, IntegersAreExactAndWrapAround) {
  const std::string integers = ", dtype=i32";
  EXPECT_EQ(Scalar("2147483647 + 1", integers), -2147483648.0);
  // 65537^2 = 2^32 + 131073.
  EXPECT_EQ(Scalar("65537 * 65537", integers), 131073);
  EXPECT_EQ(Scalar("i32(f32(7) / 2)", integers), 3);
  EXPECT_EQ(Scalar("i32(i8(300))", integers), 44);
  EXPECT_EQ(Scalar("i32(-1e20)", integers), -2147483648.0);
}

TEST(InterpreterTest, StoresAndCastsRoundToTheirTypeAndNothingElseDoes) {
  EXPECT_EQ(Scalar("f16(2049)"), 2048);
  EXPECT_EQ(Scalar("bf16(257)"), 256);
  EXPECT_EQ(Scalar("2049", ", dtype=f16"), 2048);
  // In between the sum has more bits than f32 would keep.
  EXPECT_EQ(Scalar("(16777216 + 1) - 16777216"), 1);
}

void ExpectMatmul(int64_t m, int64_t n, int64_t k, DType dtype, DType out) {
  const Workload workload =
      Parsed(absl::StrCat("matmul(m=", m, ",n=", n, ",k=", k,
                          ",dtype=", std::string(DTypeName(dtype)),
                          ",out_dtype=", std::string(DTypeName(out)), ")"));
  Random random(m * 100 + n * 10 + k);
  const TensorValues a = RandomValues(m * k, dtype, random);
  const TensorValues b = RandomValues(k * n, dtype, random);
  const auto c = Interpret(workload, std::vector<TensorValues>{a, b});
  ASSERT_EQ(c.size(), 1u);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      EXPECT_EQ(c[0][i * n + j], RoundToDType(sum, out));
    }
  }
}

TEST(InterpreterTest, MatrixProducts) {
  ExpectMatmul(7, 11, 13, DType::kF32, DType::kF32);
  ExpectMatmul(1, 1, 1, DType::kF32, DType::kF32);
  ExpectMatmul(1, 9, 5, DType::kF32, DType::kF32);
  ExpectMatmul(9, 1, 5, DType::kF16, DType::kF16);
  ExpectMatmul(3, 4, 50, DType::kBF16, DType::kF32);
  ExpectMatmul(3, 4, 300, DType::kI8, DType::kI32);
}

struct Conv {
  int64_t n, h, w, ci, co, kh, kw, stride, pad, dilation;
};

void ExpectConv(const Conv& p, bool channels_last) {
  const Workload workload = Parsed(absl::StrCat(
      "conv2d(n=", p.n, ",h=", p.h, ",w=", p.w, ",ci=", p.ci, ",co=", p.co,
      ",kh=", p.kh, ",kw=", p.kw, ",stride=", p.stride, ",pad=", p.pad,
      ",dilation=", p.dilation, ",layout=", channels_last ? "NHWC" : "NCHW",
      ")"));
  Random random(p.h * 1000 + p.w);
  const TensorValues x =
      RandomValues(p.n * p.h * p.w * p.ci, DType::kF32, random);
  const TensorValues w =
      RandomValues(p.kh * p.kw * p.ci * p.co, DType::kF32, random);
  const auto result = Interpret(workload, std::vector<TensorValues>{x, w});
  const int64_t oh =
      (p.h + 2 * p.pad - (p.kh - 1) * p.dilation - 1) / p.stride + 1;
  const int64_t ow =
      (p.w + 2 * p.pad - (p.kw - 1) * p.dilation - 1) / p.stride + 1;
  ASSERT_EQ(static_cast<int64_t>(result[0].size()), p.n * oh * ow * p.co);
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t y = 0; y < oh; ++y)
      for (int64_t z = 0; z < ow; ++z)
        for (int64_t o = 0; o < p.co; ++o) {
          double sum = 0;
          for (int64_t r = 0; r < p.kh; ++r)
            for (int64_t s = 0; s < p.kw; ++s)
              for (int64_t c = 0; c < p.ci; ++c) {
                const int64_t yy = y * p.stride + r * p.dilation - p.pad;
                const int64_t zz = z * p.stride + s * p.dilation - p.pad;
                if (yy < 0 || yy >= p.h || zz < 0 || zz >= p.w) continue;
                sum += channels_last
                           ? x[((n * p.h + yy) * p.w + zz) * p.ci + c] *
                                 w[((r * p.kw + s) * p.ci + c) * p.co + o]
                           : x[((n * p.ci + c) * p.h + yy) * p.w + zz] *
                                 w[((o * p.ci + c) * p.kh + r) * p.kw + s];
              }
          const int64_t at = channels_last ? ((n * oh + y) * ow + z) * p.co + o
                                           : ((n * p.co + o) * oh + y) * ow + z;
          EXPECT_NEAR(result[0][at], sum, 1e-6);
        }
}

TEST(InterpreterTest, Convolutions) {
  const Conv cases[] = {
      {1, 5, 7, 3, 4, 3, 3, 1, 0, 1},   // plain, odd sizes
      {2, 6, 5, 2, 3, 3, 3, 1, 1, 1},   // padded
      {1, 9, 8, 3, 2, 3, 2, 2, 1, 1},   // strided, uneven kernel
      {1, 9, 11, 2, 2, 3, 3, 1, 2, 2},  // dilated
      {1, 10, 9, 1, 5, 5, 3, 3, 2, 2},  // all of it
      {1, 4, 4, 6, 7, 1, 1, 1, 0, 1},   // one by one
      {1, 1, 1, 1, 1, 3, 3, 1, 1, 1},   // more padding than image
  };
  for (const Conv& conv : cases) {
    ExpectConv(conv, /*channels_last=*/true);
    ExpectConv(conv, /*channels_last=*/false);
  }
}

TEST(InterpreterTest, SoftmaxRowsSumToOneAndMatchTheDefinition) {
  const int64_t rows = 5;
  const int64_t cols = 37;
  const Workload workload = Parsed("softmax(rows=5,cols=37)");
  Random random(3);
  TensorValues x = RandomValues(rows * cols, DType::kF32, random);
  x[3] = 80;  // exp(80 * 2) overflows f32 unless rows are shifted
  x[4] = 160;
  const auto y = Interpret(workload, std::vector<TensorValues>{x});
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += std::exp(x[i * cols + j] - 160);
    double total = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const double expected = std::exp(x[i * cols + j] - 160) / sum;
      EXPECT_NEAR(y[0][i * cols + j], expected, 1e-6 * expected + 1e-30);
      total += y[0][i * cols + j];
    }
    EXPECT_NEAR(total, 1, 1e-5);
  }
}

TEST(InterpreterTest, ReductionsOtherThanSums) {
  const std::vector<TensorValues> inputs = {{3, -5, 2, 7, 1, -2}};
  const std::string where = " where i=2, k=3";
  EXPECT_EQ(Interpret(Parsed("C[i] = max(k) A[i,k]" + where), inputs)[0],
            (TensorValues{3, 7}));
  EXPECT_EQ(Interpret(Parsed("C[i] = min(k) A[i,k]" + where), inputs)[0],
            (TensorValues{-5, -2}));
  EXPECT_EQ(Interpret(Parsed("C[i] = prod(k) A[i,k]" + where), inputs)[0],
            (TensorValues{-30, -14}));
  EXPECT_EQ(Interpret(Parsed("C[i] = max(k) A[i,k] where i=2, k=3, dtype=i32"),
                      inputs)[0],
            (TensorValues{3, 7}));
}

TEST(InterpreterTest, SeveralOutputsComeInOrderOfAssignment) {
  const auto outputs = Interpret(
      Parsed("S[i] = A[i] + 1; T[i] = A[i] * 2; U[i] = S[i] - 3 where i=2"),
      std::vector<TensorValues>{{5, 6}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0], (TensorValues{10, 12}));
  EXPECT_EQ(outputs[1], (TensorValues{3, 4}));
}

TEST(PointInterpreterTest, AgreesWithTheWholeResultForEverySample) {
  for (const Op& op : Ops()) {
    for (const std::string& sample : op.samples) {
      const Workload workload = Parsed(sample);
      if (workload.Flops() > 2e6) continue;
      Random random(9);
      std::vector<TensorValues> inputs;
      for (int id : workload.TensorsWithRole(TensorRole::kInput)) {
        inputs.push_back(RandomValues(workload.tensors[id].Elements(),
                                      workload.tensors[id].dtype, random));
      }
      const auto outputs = Interpret(workload, inputs);
      const auto ids = workload.TensorsWithRole(TensorRole::kOutput);
      PointInterpreter points(workload, inputs);
      for (size_t t = 0; t < ids.size(); ++t) {
        for (int round = 0; round < 50; ++round) {
          const int64_t offset = random.Below(outputs[t].size());
          EXPECT_EQ(points.Evaluate(ids[t], offset), outputs[t][offset])
              << sample << " at " << offset;
        }
      }
    }
  }
}

}  // namespace
}  // namespace regatta

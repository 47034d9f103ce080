#include "tests/compiler/device_code_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/module/half.h"
#include "tests/compiler/device_support.h"

namespace regatta {

void ExpectExactCases(const Target& target, const DeviceRunner& run) {
  for (const DeviceCase& c : DeviceCases()) {
    SCOPED_TRACE(c.name);
    ExpectExact(c.program, BuildFor(c.program, target), run);
    if (testing::Test::HasFailure()) return;
  }
}

namespace {

struct Function {
  const char* name;
  UnaryOp op;
  double scale;  // a power of two: exact
  double (*reference)(double);
};

}  // namespace

void ExpectAccurateFunctions(const Target& target, const DeviceRunner& run) {
  const Function functions[] = {
      {"exp", UnaryOp::kExp, 8, [](double x) { return std::exp(x); }},
      {"sigmoid", UnaryOp::kSigmoid, 4,
       [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"tanh", UnaryOp::kTanh, 1, [](double x) { return std::tanh(x); }},
      {"erf", UnaryOp::kErf, 0.5, [](double x) { return std::erf(x); }},
      {"log", UnaryOp::kLog, 0, [](double x) { return std::log(x); }},
      {"sqrt", UnaryOp::kSqrt, 0, [](double x) { return std::sqrt(x); }},
      {"rsqrt", UnaryOp::kRsqrt, 0, [](double x) { return 1 / std::sqrt(x); }},
  };
  TensorValues x(512);
  Random random(3);
  for (double& value : x) {
    value = static_cast<float>(random.Unit() * 18 - 9);
  }
  std::vector<MapBody> bodies;
  for (const Function& f : functions) {
    bodies.push_back({DType::kF32, [&f](loop::ValuePtr v) {
                        return loop::Unary(
                            f.op, f.scale == 0
                                      ? loop::Unary(UnaryOp::kAbs, v)
                                      : loop::Binary(BinaryOp::kMul, v,
                                                     loop::Const(f.scale)));
                      }});
  }
  const Module module =
      BuildFor(MapProgram(512, 4, DType::kF32, bodies), target);
  const auto outputs = run(module, {x});
  ASSERT_EQ(outputs.size(), std::size(functions));
  for (size_t f = 0; f < outputs.size(); ++f) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double scale = functions[f].scale;
      const double expected =
          functions[f].reference(scale == 0 ? std::fabs(x[i]) : x[i] * scale);
      // OpenCL's own bounds are at most 16 units; logs near 0 are absolute.
      ASSERT_LE(std::fabs(outputs[f][i] - expected),
                16 * 0x1p-24 * std::max(std::fabs(expected), 0x1p-20))
          << functions[f].name << " of " << x[i];
    }
  }
}

void ExpectDefinedCorners(const Target& target, const DeviceRunner& run) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const TensorValues x = {nan,  infinity, -infinity, 3e9,   -3e9, 0.5,
                          -0.5, 1.75,     -1.75,     200.0, -200, 2147483520.0};
  std::vector<MapBody> bodies;
  for (const BinaryOp op : {BinaryOp::kMax, BinaryOp::kMin}) {
    bodies.push_back({DType::kF32, [op](loop::ValuePtr v) {
                        return loop::Binary(op, v, loop::Const(1));
                      }});
    bodies.push_back({DType::kF32, [op](loop::ValuePtr v) {
                        return loop::Binary(op, loop::Const(1), v);
                      }});
  }
  for (const DType to : {DType::kI32, DType::kI8}) {
    bodies.push_back(
        {to, [to](loop::ValuePtr v) { return loop::Cast(v, to); }});
  }
  const auto n = static_cast<int64_t>(x.size());
  const auto y =
      run(BuildFor(MapProgram(n, 4, DType::kF32, bodies), target), {x});
  ASSERT_EQ(y.size(), 6u);
  for (int i = 0; i < 4; ++i) {
    const bool max = i < 2;
    EXPECT_TRUE(std::isnan(y[i][0])) << i;
    EXPECT_EQ(y[i][1], max ? infinity : 1);
    EXPECT_EQ(y[i][2], max ? 1 : -infinity);
    EXPECT_EQ(y[i][5], max ? 1 : 0.5);
  }
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(y[4][i], CastToDType(x[i], DType::kF32, DType::kI32)) << x[i];
    EXPECT_EQ(y[5][i], CastToDType(x[i], DType::kF32, DType::kI8)) << x[i];
  }
}

void ExpectDefinedCastsOfF64(const Target& target, const DeviceRunner& run) {
  const double infinity = std::numeric_limits<double>::infinity();
  const TensorValues x = {std::numeric_limits<double>::quiet_NaN(),
                          infinity,
                          -infinity,
                          3e9,
                          -3e9,
                          1.75,
                          -1.75,
                          200};
  // What the interpreter makes of them, worked out by hand.
  constexpr double kMost = 2147483647, kLeast = -2147483648.0;
  const std::vector<TensorValues> want = {
      {0, kMost, kLeast, kMost, kLeast, 1, -1, 200},
      {0, 127, -128, 127, -128, 1, -1, 127}};
  std::vector<MapBody> bodies;
  for (const DType to : {DType::kI32, DType::kI8}) {
    bodies.push_back({to, [to](loop::ValuePtr v) {
                        return loop::Cast(loop::Cast(v, DType::kF64), to);
                      }});
  }
  const auto n = static_cast<int64_t>(x.size());
  EXPECT_EQ(run(BuildFor(MapProgram(n, 4, DType::kF32, bodies), target), {x}),
            want);
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(CastToDType(x[i], DType::kF64, DType::kI32), want[0][i]) << x[i];
    EXPECT_EQ(CastToDType(x[i], DType::kF64, DType::kI8), want[1][i]) << x[i];
  }
}

// Ties, subnormals and what overflows among them.
void ExpectRoundingToNearestEven(const Target& target,
                                 const DeviceRunner& run) {
  TensorValues x;
  Random random(9);
  for (int e = -30; e <= 20; ++e) {
    for (const double m : {1.0, 1.0 + 0x1p-11, 1.0 + 3 * 0x1p-11, 1.0 + 0x1p-8,
                           1.0 + 3 * 0x1p-8, 2 - 0x1p-12, 1 + random.Unit()}) {
      x.push_back(static_cast<float>(std::ldexp(m, e)));
      x.push_back(-x.back());
    }
  }
  const DType types[] = {DType::kF16, DType::kBF16};
  std::vector<MapBody> bodies;
  for (const DType to : types) {
    bodies.push_back(
        {to, [to](loop::ValuePtr v) { return loop::Cast(v, to); }});
  }
  const auto n = static_cast<int64_t>(x.size());
  const auto y =
      run(BuildFor(MapProgram(n, 4, DType::kF32, bodies), target), {x});
  ASSERT_EQ(y.size(), 2u);
  for (int t = 0; t < 2; ++t) {
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[t][i], RoundToDType(x[i], types[t])) << x[i];
    }
  }
}

}  // namespace regatta

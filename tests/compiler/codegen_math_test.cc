// Elementary functions and element types, on every runnable target.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"
#include "compiler/module/half.h"
#include "tests/compiler/codegen_support.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::Scope;

class MathCode : public testing::TestWithParam<size_t> {
 protected:
  const Target& target() const { return RunnableTargets()[GetParam()].target; }

  // y[i] = body(x[i]) over `n` elements, 64 lanes at a time and a tail.
  Module Map(int64_t n, DType from, DType to,
             const std::function<loop::ValuePtr(loop::ValuePtr)>& body) const {
    ProgramWriter w;
    const int x = w.Add("x", Scope::kInput, from, n);
    const int y = w.Add("y", Scope::kOutput, to, n);
    std::vector<loop::StmtPtr> parts;
    if (n >= 64) {
      const int b = w.Var(), i = w.Var();
      const Affine at = V(b, 64) + V(i);
      parts.push_back(
          loop::For(b, n / 64, LoopKind::kSerial,
                    loop::For(i, 64, LoopKind::kVector,
                              loop::Store(y, at, body(w.Load(x, at))))));
    }
    if (n % 64) {
      const int i = w.Var();
      const Affine at = V(i) + Affine(n / 64 * 64);
      parts.push_back(loop::For(i, n % 64, LoopKind::kVector,
                                loop::Store(y, at, body(w.Load(x, at)))));
    }
    w.Kernel(loop::Block(parts));
    return Build(w.program, target());
  }

  template <typename From, typename To>
  std::vector<To> RunMap(
      std::vector<From> x, DType from, DType to,
      const std::function<loop::ValuePtr(loop::ValuePtr)>& body) const {
    const LoadedModule module(
        Map(static_cast<int64_t>(x.size()), from, to, body));
    std::vector<To> y(x.size());
    EXPECT_EQ(module.Call({x.data(), y.data()}), 0);
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, MathCode,
                         testing::Range<size_t>(0, RunnableTargets().size()),
                         [](const auto& info) {
                           return RunnableTargets()[info.param].name;
                         });

// Every 2,003rd float: all signs, exponents, subnormals, infinities, NaNs.
std::vector<float> FloatsOfEveryKind() {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 2003) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float special :
       {0.0f, -0.0f, 1.0f, -1.0f, infinity, -infinity, std::nanf(""), 88.72f,
        88.73f, -87.33f, -87.34f, -103.9f, -104.1f, 1e-45f, 0.625f, -0.625f}) {
    values.push_back(special);
  }
  return values;
}

// Distance from the exact result in units of the last place of a float there.
double UlpsOff(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) {
    return got == rounded ? 0 : INFINITY;
  }
  int exponent;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(got - exact) / ulp;
}

struct FunctionCase {
  const char* name;
  UnaryOp op;
  double (*exact)(double);
  double max_ulps;   // where the result is not tiny
  double max_error;  // or this far off is good enough
};

const FunctionCase kFunctions[] = {
    {"exp", UnaryOp::kExp, [](double x) { return std::exp(x); }, 2, 0},
    {"log", UnaryOp::kLog, [](double x) { return std::log(x); }, 2, 0},
    {"tanh", UnaryOp::kTanh, [](double x) { return std::tanh(x); }, 3, 0},
    {"sigmoid", UnaryOp::kSigmoid,
     [](double x) { return 1 / (1 + std::exp(-x)); }, 4, 2e-38},
    {"erf", UnaryOp::kErf, [](double x) { return std::erf(x); }, 8, 0},
    {"sqrt", UnaryOp::kSqrt, [](double x) { return std::sqrt(x); }, 0.5, 0},
    {"rsqrt", UnaryOp::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.6,
     0},
    {"floor", UnaryOp::kFloor, [](double x) { return std::floor(x); }, 0, 0},
    {"round", UnaryOp::kRound, [](double x) { return std::nearbyint(x); }, 0,
     0},
    {"abs", UnaryOp::kAbs, [](double x) { return std::fabs(x); }, 0, 0},
    {"neg", UnaryOp::kNeg, [](double x) { return -x; }, 0, 0},
};

TEST_P(MathCode, FunctionsOfFloatsAreGoodToAFewUnitsOverTheWholeRange) {
  const std::vector<float> x = FloatsOfEveryKind();
  for (const FunctionCase& function : kFunctions) {
    const std::vector<float> y = RunMap<float, float>(
        x, DType::kF32, DType::kF32,
        [&](loop::ValuePtr v) { return loop::Unary(function.op, v); });
    double worst = 0;
    float worst_at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = function.exact(x[i]);
      if (std::fabs(y[i] - exact) <= function.max_error) continue;
      const double ulps = UlpsOff(y[i], exact);
      if (ulps > worst) {
        worst = ulps;
        worst_at = x[i];
      }
    }
    EXPECT_LE(worst, function.max_ulps)
        << function.name << "(" << worst_at << ")";
  }
}

TEST_P(MathCode, FunctionsOfDoublesAreThoseOfLibm) {
  Random random(1);
  std::vector<double> x;
  for (int i = 0; i < 1000; ++i) x.push_back(random.Unit() * 40 - 20);
  for (const FunctionCase& function : kFunctions) {
    const std::vector<double> y = RunMap<double, double>(
        x, DType::kF64, DType::kF64,
        [&](loop::ValuePtr v) { return loop::Unary(function.op, v); });
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = function.exact(x[i]);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y[i])) << function.name << "(" << x[i] << ")";
      } else {
        EXPECT_NEAR(y[i], exact, 1e-15 * std::fabs(exact))
            << function.name << "(" << x[i] << ")";
      }
    }
  }
}

TEST_P(MathCode, EveryNarrowFloatWidensExactly) {
  std::vector<uint16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const std::vector<float> y = RunMap<uint16_t, float>(
        bits, type, DType::kF32,
        [](loop::ValuePtr v) { return loop::Cast(v, DType::kF32); });
    for (size_t i = 0; i < bits.size(); ++i) {
      const double exact = type == DType::kF16 ? F16BitsToDouble(bits[i])
                                               : BF16BitsToDouble(bits[i]);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(y[i])) << i;
      } else {
        ASSERT_EQ(y[i], exact) << i;
        ASSERT_EQ(std::signbit(y[i]), std::signbit(exact)) << i;
      }
    }
  }
}

TEST_P(MathCode, FloatsNarrowToNearestEven) {
  std::vector<float> x = FloatsOfEveryKind();
  // Halfway between neighbours, and just beside.
  for (int i = 0; i < (1 << 16); i += 3) {
    const float half = static_cast<float>(F16BitsToDouble(i));
    for (const int off : {-1, 0, 1}) {
      x.push_back(
          std::bit_cast<float>(std::bit_cast<uint32_t>(half) + 0x1000 + off));
      x.push_back(std::bit_cast<float>((i << 16) + 0x8000 + off));
    }
  }
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const std::vector<uint16_t> y = RunMap<float, uint16_t>(
        x, DType::kF32, type,
        [&](loop::ValuePtr v) { return loop::Cast(v, type); });
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        const double back = type == DType::kF16 ? F16BitsToDouble(y[i])
                                                : BF16BitsToDouble(y[i]);
        ASSERT_TRUE(std::isnan(back)) << std::bit_cast<uint32_t>(x[i]);
      } else {
        ASSERT_EQ(y[i], type == DType::kF16 ? DoubleToF16Bits(x[i])
                                            : DoubleToBF16Bits(x[i]))
            << x[i];
      }
    }
  }
}

TEST_P(MathCode, NarrowFloatsAreComputedInFloat) {
  std::vector<uint16_t> x;
  for (int i = 0; i < 1000; ++i) x.push_back(DoubleToF16Bits(i * 0.37 - 180));
  const std::vector<uint16_t> y = RunMap<uint16_t, uint16_t>(
      x, DType::kF16, DType::kF16, [](loop::ValuePtr v) {
        const auto wide = loop::Cast(v, DType::kF32);
        return loop::Cast(loop::Binary(BinaryOp::kMul, wide, wide),
                          DType::kF16);
      });
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = F16BitsToDouble(x[i]);
    EXPECT_EQ(y[i], DoubleToF16Bits(value * value)) << value;
  }
}

TEST_P(MathCode, IntegersWrapAndCastsSaturate) {
  std::vector<int8_t> bytes;
  for (int i = -128; i < 128; ++i) bytes.push_back(static_cast<int8_t>(i));
  const std::vector<int32_t> squares = RunMap<int8_t, int32_t>(
      bytes, DType::kI8, DType::kI32, [](loop::ValuePtr v) {
        const auto wide = loop::Cast(v, DType::kI32);
        return loop::Binary(BinaryOp::kMul, wide, wide);
      });
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(squares[i], bytes[i] * bytes[i]);
  }
  const std::vector<int32_t> ints = {0,   1,   127,    128,        255,
                                     256, -1,  -128,   -129,       1 << 20,
                                     -77, 300, -40000, 2147483647, -2147483647};
  const std::vector<int8_t> wrapped = RunMap<int32_t, int8_t>(
      ints, DType::kI32, DType::kI8,
      [](loop::ValuePtr v) { return loop::Cast(v, DType::kI8); });
  const std::vector<int32_t> doubled = RunMap<int32_t, int32_t>(
      ints, DType::kI32, DType::kI32,
      [](loop::ValuePtr v) { return loop::Binary(BinaryOp::kAdd, v, v); });
  for (size_t i = 0; i < ints.size(); ++i) {
    EXPECT_EQ(wrapped[i], static_cast<int8_t>(ints[i]));
    EXPECT_EQ(doubled[i], static_cast<int32_t>(2u * ints[i]));
  }
  const std::vector<float> floats = {0.9f,    -0.9f, 126.7f, 127.9f, 128.0f,
                                     -129.0f, 3e9f,  -3e9f,  NAN};
  const std::vector<int8_t> bytes_of = RunMap<float, int8_t>(
      floats, DType::kF32, DType::kI8,
      [](loop::ValuePtr v) { return loop::Cast(v, DType::kI8); });
  const std::vector<int32_t> ints_of = RunMap<float, int32_t>(
      floats, DType::kF32, DType::kI32,
      [](loop::ValuePtr v) { return loop::Cast(v, DType::kI32); });
  EXPECT_EQ(bytes_of,
            (std::vector<int8_t>{0, 0, 126, 127, 127, -128, 127, -128, 0}));
  EXPECT_EQ(ints_of,
            (std::vector<int32_t>{0, 0, 126, 127, 128, -129, 2147483647,
                                  std::numeric_limits<int32_t>::min(), 0}));
}

TEST_P(MathCode, IntegerDivisionIsDefinedForEveryPair) {
  const int32_t least = std::numeric_limits<int32_t>::min();
  const std::vector<int32_t> divisors = {0, -1, 1, 7, -7, least, 2147483647};
  const std::vector<int32_t> quotients = RunMap<int32_t, int32_t>(
      divisors, DType::kI32, DType::kI32, [&](loop::ValuePtr v) {
        return loop::Binary(BinaryOp::kDiv, loop::Const(least, DType::kI32), v);
      });
  EXPECT_EQ(quotients, (std::vector<int32_t>{0, least, least, least / 7,
                                             least / -7, 1, -1}));
}

TEST_P(MathCode, MaxAndMinKeepANanOfEitherOperand) {
  const std::vector<float> x = {1, -1, NAN, 3};
  for (const bool swapped : {false, true}) {
    const auto with = [&](BinaryOp op) {
      return RunMap<float, float>(
          x, DType::kF32, DType::kF32, [&](loop::ValuePtr v) {
            const loop::ValuePtr half = loop::Const(0.5);
            return swapped ? loop::Binary(op, half, v)
                           : loop::Binary(op, v, half);
          });
    };
    const std::vector<float> most = with(BinaryOp::kMax);
    EXPECT_EQ(most[0], 1);
    EXPECT_EQ(most[1], 0.5);
    EXPECT_TRUE(std::isnan(most[2]));
    EXPECT_EQ(most[3], 3);
    const std::vector<float> least = with(BinaryOp::kMin);
    EXPECT_EQ(least[0], 0.5);
    EXPECT_EQ(least[1], -1);
    EXPECT_TRUE(std::isnan(least[2]));
    EXPECT_EQ(least[3], 0.5);
  }
}

}  // namespace
}  // namespace regatta

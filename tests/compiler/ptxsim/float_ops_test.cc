// Floating-point instructions: arithmetic of every width, directed rounding,
// special values, conversions. References are computed in wider types or by
// compiler/module/half.h, which shares no code with the simulator.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "base/random.h"
#include "compiler/module/half.h"
#include "tests/compiler/ptxsim/snippet.h"

namespace regatta::ptxsim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SnippetInput Floats(uint64_t seed) {
  Random random(seed);
  const float special[] = {0.0f, -0.0f,  1.0f,  -1.5f,   kInf,     -kInf,
                           kNan, 1e-40f, 3e38f, -2e-38f, 65504.0f, 6e-8f};
  SnippetInput input;
  for (auto* values : {&input.a, &input.b, &input.c}) {
    for (int i = 0; i < 32; ++i) {
      float value = special[random.Below(12)];
      if (i >= 12 || seed > 2) {
        value = static_cast<float>((random.Unit() * 2 - 1) *
                                   std::ldexp(1.0, int(random.Below(20)) - 10));
      }
      values->push_back(Bits(value));
    }
  }
  return input;
}

void ExpectSame(float have, float want, const std::string& text) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(have)) << text << " gave " << have;
  } else {
    ASSERT_EQ(Bits(have), Bits(want))
        << text << " gave " << have << ", not " << want;
  }
}

void Check(const std::string& text,
           const std::function<float(float, float, float)>& reference) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const SnippetInput input = Floats(seed);
    const auto out = Run32(text + " mov.b32 %r9, %f9;", input);
    for (int i = 0; i < 32; ++i) {
      ExpectSame(AsFloat(out[i]),
                 reference(AsFloat(input.a[i]), AsFloat(input.b[i]),
                           AsFloat(input.c[i])),
                 text);
    }
  }
}

TEST(PtxFloatTest, Arithmetic32) {
  Check("add.f32 %f9, %f1, %f2;",
        [](float a, float b, float) { return a + b; });
  Check("sub.rn.f32 %f9, %f1, %f2;",
        [](float a, float b, float) { return a - b; });
  Check("mul.f32 %f9, %f1, 0f40400000;",
        [](float a, float, float) { return a * 3; });
  Check("fma.rn.f32 %f9, %f1, %f2, %f3;",
        [](float a, float b, float c) { return std::fma(a, b, c); });
  Check("div.rn.f32 %f9, %f1, %f2;",
        [](float a, float b, float) { return a / b; });
  Check("neg.f32 %f9, %f1;", [](float a, float, float) { return -a; });
  Check("abs.f32 %f9, %f1;",
        [](float a, float, float) { return std::fabs(a); });
  Check("sqrt.rn.f32 %f9, %f1;",
        [](float a, float, float) { return std::sqrt(a); });
  Check("rcp.rn.f32 %f9, %f1;", [](float a, float, float) { return 1 / a; });
  Check("add.sat.f32 %f9, %f1, %f2;", [](float a, float b, float) {
    const float sum = a + b;
    return std::isnan(sum) ? 0 : std::fmin(std::fmax(sum, 0.0f), 1.0f);
  });
  Check("copysign.f32 %f9, %f1, %f2;",
        [](float a, float b, float) { return std::copysign(b, a); });
}

TEST(PtxFloatTest, SubnormalsAreFlushedOnlyWithFtz) {
  const SnippetInput input = {.a = {Bits(1e-40f), Bits(-1e-40f), Bits(1e-20f)},
                              .b = {Bits(1.0f), Bits(1.0f), Bits(1e-20f)},
                              .threads = 3};
  auto out = Run32("mul.f32 %f9, %f1, %f2; mov.b32 %r9, %f9;", input);
  EXPECT_EQ(AsFloat(out[0]), 1e-40f);
  EXPECT_EQ(AsFloat(out[2]), 1e-20f * 1e-20f);
  out = Run32("mul.ftz.f32 %f9, %f1, %f2; mov.b32 %r9, %f9;", input);
  EXPECT_EQ(out[0], 0u);
  EXPECT_EQ(out[1], 0x80000000u);
  EXPECT_EQ(out[2], 0u);
}

// The host's own directed rounding is the reference.
TEST(PtxFloatTest, DirectedRounding) {
  const std::pair<const char*, int> modes[] = {
      {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [name, mode] : modes) {
    const auto rounded = [mode = mode](auto operation) {
      return [=](float a, float b, float c) {
        std::fesetround(mode);
        volatile float x = a, y = b, z = c;
        volatile float result = operation(x, y, z);
        std::fesetround(FE_TONEAREST);
        return static_cast<float>(result);
      };
    };
    const std::string dot = std::string(".") + name;
    Check("add" + dot + ".f32 %f9, %f1, %f2;",
          rounded([](volatile float& a, volatile float& b, volatile float&) {
            return a + b;
          }));
    Check("mul" + dot + ".f32 %f9, %f1, %f2;",
          rounded([](volatile float& a, volatile float& b, volatile float&) {
            return a * b;
          }));
    Check("fma" + dot + ".f32 %f9, %f1, %f2, %f3;",
          rounded([](volatile float& a, volatile float& b, volatile float& c) {
            return std::fma(a, b, c);
          }));
  }
}

TEST(PtxFloatTest, MinimumAndMaximum) {
  const SnippetInput input = {
      .a = {Bits(1.0f), Bits(kNan), Bits(-0.0f), Bits(0.0f), Bits(kNan)},
      .b = {Bits(2.0f), Bits(2.0f), Bits(0.0f), Bits(-0.0f), Bits(kNan)},
      .threads = 5};
  auto out = Run32("min.f32 %f9, %f1, %f2; mov.b32 %r9, %f9;", input);
  EXPECT_EQ(AsFloat(out[0]), 1.0f);
  EXPECT_EQ(AsFloat(out[1]), 2.0f);
  EXPECT_EQ(out[2], 0x80000000u);
  EXPECT_EQ(out[3], 0x80000000u);
  EXPECT_TRUE(std::isnan(AsFloat(out[4])));
  out = Run32("max.NaN.f32 %f9, %f1, %f2; mov.b32 %r9, %f9;", input);
  EXPECT_EQ(AsFloat(out[0]), 2.0f);
  EXPECT_TRUE(std::isnan(AsFloat(out[1])));
  EXPECT_EQ(out[2], 0u);
}

TEST(PtxFloatTest, ComparisonsWithNan) {
  const SnippetInput input = {.a = {Bits(1.0f), Bits(kNan), Bits(2.0f)},
                              .b = {Bits(2.0f), Bits(1.0f), Bits(2.0f)},
                              .threads = 3};
  const auto check = [&](const std::string& name, uint32_t want) {
    const auto out = Run32("setp." + name +
                               ".f32 %p1, %f1, %f2;"
                               "selp.b32 %r9, 1, 0, %p1;",
                           input);
    EXPECT_EQ(out[0] | out[1] << 1 | out[2] << 2, want) << name;
  };
  // Bit 0: 1 with 2; bit 1: NaN with 1; bit 2: 2 with 2.
  check("lt", 0b001);
  check("ltu", 0b011);
  check("le", 0b101);
  check("leu", 0b111);
  check("eq", 0b100);
  check("equ", 0b110);
  check("ne", 0b001);
  check("neu", 0b011);
  check("gt", 0b000);
  check("gtu", 0b010);
  check("ge", 0b100);
  check("geu", 0b110);
  check("num", 0b101);
  check("nan", 0b010);
}

TEST(PtxFloatTest, SpecialFunctionsAreWithinTwoUlp) {
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"ex2.approx", [](double x) { return std::exp2(x); }},
      {"lg2.approx", [](double x) { return std::log2(x); }},
      {"rcp.approx", [](double x) { return 1 / x; }},
      {"rsqrt.approx", [](double x) { return 1 / std::sqrt(x); }},
      {"sqrt.approx", [](double x) { return std::sqrt(x); }},
      {"sin.approx", [](double x) { return std::sin(x); }},
      {"cos.approx", [](double x) { return std::cos(x); }},
      {"tanh.approx", [](double x) { return std::tanh(x); }}};
  SnippetInput input;
  for (int i = 0; i < 32; ++i) input.a.push_back(Bits(0.37f + 0.41f * i));
  for (const auto& [name, function] : functions) {
    const auto out =
        Run32(std::string(name) + ".f32 %f9, %f1; mov.b32 %r9, %f9;", input);
    for (int i = 0; i < 32; ++i) {
      const double want = function(AsFloat(input.a[i]));
      EXPECT_NEAR(AsFloat(out[i]), want, std::fabs(want) * 0x1p-22) << name;
    }
  }
}

TEST(PtxFloatTest, Arithmetic64) {
  SnippetInput input;
  Random random(5);
  for (int i = 0; i < 32; ++i) {
    input.a.push_back(Bits(random.Unit() * 8 - 4));
    input.b.push_back(Bits(random.Unit() * 8 - 4));
    input.c.push_back(Bits(random.Unit() * 8 - 4));
  }
  const auto check = [&](const std::string& text, auto reference) {
    const auto out = Run64(text, input);
    for (int i = 0; i < 32; ++i) {
      const auto real = [](uint64_t x) { return std::bit_cast<double>(x); };
      ASSERT_EQ(real(out[i]),
                reference(real(input.a[i]), real(input.b[i]), real(input.c[i])))
          << text;
    }
  };
  using D = double;
  check("add.f64 %d9, %d1, %d2;", [](D a, D b, D) { return a + b; });
  check("mul.rn.f64 %d9, %d1, %d2;", [](D a, D b, D) { return a * b; });
  check("fma.rn.f64 %d9, %d1, %d2, %d3;",
        [](D a, D b, D c) { return std::fma(a, b, c); });
  check("div.rn.f64 %d9, %d1, 0d4008000000000000;",
        [](D a, D, D) { return a / 3; });
  check("abs.f64 %d9, %d1;", [](D a, D, D) { return std::fabs(a); });
}

// Two numbers in a register against the same in double, rounded once.
void CheckPacked(const std::string& text, bool bfloat,
                 const std::function<double(double, double, double)>& f) {
  Random random(11);
  SnippetInput input;
  const auto narrow = [&](double x) {
    return bfloat ? DoubleToBF16Bits(x) : DoubleToF16Bits(x);
  };
  const auto wide = [&](uint64_t x) {
    const auto bits = static_cast<uint16_t>(x);
    return bfloat ? BF16BitsToDouble(bits) : F16BitsToDouble(bits);
  };
  for (auto* values : {&input.a, &input.b, &input.c}) {
    for (int i = 0; i < 32; ++i) {
      const auto one = [&] {
        return narrow((random.Unit() * 2 - 1) *
                      std::ldexp(1.0, int(random.Below(24)) - 16));
      };
      values->push_back(one() | uint32_t{one()} << 16);
    }
  }
  const auto out = Run32(text, input);
  for (int i = 0; i < 32; ++i) {
    for (int half = 0; half < 2; ++half) {
      const int shift = 16 * half;
      const double want =
          f(wide(input.a[i] >> shift), wide(input.b[i] >> shift),
            wide(input.c[i] >> shift));
      ASSERT_EQ(static_cast<uint16_t>(out[i] >> shift), narrow(want))
          << text << " of " << wide(input.a[i] >> shift) << " and "
          << wide(input.b[i] >> shift);
    }
  }
}

TEST(PtxFloatTest, PackedHalves) {
  for (const bool bfloat : {false, true}) {
    const std::string type = bfloat ? "bf16x2" : "f16x2";
    CheckPacked("add." + type + " %r9, %r1, %r2;", bfloat,
                [](double a, double b, double) { return a + b; });
    CheckPacked("sub." + type + " %r9, %r1, %r2;", bfloat,
                [](double a, double b, double) { return a - b; });
    CheckPacked("mul." + type + " %r9, %r1, %r2;", bfloat,
                [](double a, double b, double) { return a * b; });
    // These operands' products and sums are exact in double.
    CheckPacked("fma.rn." + type + " %r9, %r1, %r2, %r3;", bfloat,
                [](double a, double b, double c) { return std::fma(a, b, c); });
    CheckPacked("fma.rn.relu." + type + " %r9, %r1, %r2, %r3;", bfloat,
                [](double a, double b, double c) {
                  return std::fmax(std::fma(a, b, c), 0.0);
                });
    CheckPacked("max." + type + " %r9, %r1, %r2;", bfloat,
                [](double a, double b, double) { return std::fmax(a, b); });
    CheckPacked("neg." + type + " %r9, %r1;", bfloat,
                [](double a, double, double) { return -a; });
  }
}

// Every bit pattern, both ways.
TEST(PtxFloatTest, EveryHalfConverts) {
  constexpr int kThreads = 1024;
  for (const bool bfloat : {false, true}) {
    const std::string type = bfloat ? "bf16" : "f16";
    for (int base = 0; base < 65536; base += kThreads) {
      SnippetInput input = {.threads = kThreads};
      for (int i = 0; i < kThreads; ++i) input.a.push_back(base + i);
      const auto out = Run32("cvt.f32." + type + " %f4, %h1; cvt.rn." + type +
                                 ".f32 %h4, %f4; mov.b32 %r5, %f4;"
                                 "cvt.u32.u16 %r9, %h4; xor.b32 %r9, %r9, %r5;",
                             input);
      for (int i = 0; i < kThreads; ++i) {
        const auto bits = static_cast<uint16_t>(base + i);
        const double want =
            bfloat ? BF16BitsToDouble(bits) : F16BitsToDouble(bits);
        if (std::isnan(want)) continue;
        ASSERT_EQ(out[i], (Bits(static_cast<float>(want)) ^ bits))
            << type << " " << bits;
      }
    }
  }
}

TEST(PtxFloatTest, RoundingToHalves) {
  Random random(3);
  SnippetInput input = {.threads = 1024};
  for (int i = 0; i < 1024; ++i) {
    const double scale = std::ldexp(1.0, int(random.Below(48)) - 28);
    input.a.push_back(
        Bits(static_cast<float>((random.Unit() * 2 - 1) * scale)));
  }
  const auto nearest =
      Run32("cvt.rn.f16.f32 %h4, %f1; cvt.u32.u16 %r9, %h4;", input);
  const auto zero =
      Run32("cvt.rz.f16.f32 %h4, %f1; cvt.u32.u16 %r9, %h4;", input);
  const auto bfloat =
      Run32("cvt.rn.bf16.f32 %h4, %f1; cvt.u32.u16 %r9, %h4;", input);
  for (int i = 0; i < 1024; ++i) {
    const float value = AsFloat(input.a[i]);
    EXPECT_EQ(nearest[i], DoubleToF16Bits(value)) << value;
    EXPECT_EQ(bfloat[i], DoubleToBF16Bits(value)) << value;
    // Towards zero: the nearest one, or its neighbour when that is farther out.
    uint32_t want = DoubleToF16Bits(value);
    if (std::fabs(F16BitsToDouble(static_cast<uint16_t>(want))) >
        std::fabs(value)) {
      --want;
    }
    EXPECT_EQ(zero[i], want) << value;
  }
}

TEST(PtxFloatTest, PackingConversions) {
  const SnippetInput input = {
      .a = {Bits(1.5f)}, .b = {Bits(-2.0f)}, .threads = 1};
  EXPECT_EQ(Run32("cvt.rn.f16x2.f32 %r9, %f1, %f2;", input)[0], 0x3E00C000u);
  EXPECT_EQ(Run32("cvt.rn.bf16x2.f32 %r9, %f1, %f2;", input)[0], 0x3FC0C000u);
  EXPECT_EQ(Run32("cvt.rn.relu.f16x2.f32 %r9, %f1, %f2;", input)[0],
            0x3E000000u);
  // tf32 has 10 bits of fraction; ties go away from zero.
  const SnippetInput tie = {.a = {0x3F801000u, 0x3F800FFFu}, .threads = 2};
  const auto out = Run32("cvt.rna.tf32.f32 %r9, %f1;", tie);
  EXPECT_EQ(out[0], 0x3F802000u);
  EXPECT_EQ(out[1], 0x3F800000u);
}

TEST(PtxFloatTest, FloatsToIntegers) {
  const SnippetInput input = {
      .a = {Bits(2.5f), Bits(-2.5f), Bits(3.5f), Bits(1e20f), Bits(-1e20f),
            Bits(kNan), Bits(-0.7f)},
      .threads = 7};
  const auto check = [&](const std::string& name, std::vector<int64_t> want) {
    const auto out = Run32("cvt." + name + ".s32.f32 %r9, %f1;", input);
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(static_cast<int32_t>(out[i]), want[i]) << name << " " << i;
    }
  };
  constexpr int64_t kMost = 0x7FFFFFFF, kLeast = -0x80000000ll;
  check("rni", {2, -2, 4, kMost, kLeast, 0, -1});
  check("rzi", {2, -2, 3, kMost, kLeast, 0, 0});
  check("rmi", {2, -3, 3, kMost, kLeast, 0, -1});
  check("rpi", {3, -2, 4, kMost, kLeast, 0, 0});
  auto out = Run32("cvt.rzi.u32.f32 %r9, %f1;", input);
  EXPECT_EQ(out[1], 0u);
  EXPECT_EQ(out[3], ~0u);
  out = Run32("cvt.rni.sat.s8.f32 %r9, %f1;", input);
  EXPECT_EQ(static_cast<int32_t>(out[3]), 127);
  EXPECT_EQ(static_cast<int32_t>(out[4]), -128);
  out = Run32("cvt.rni.f32.f32 %f9, %f1; mov.b32 %r9, %f9;", input);
  EXPECT_EQ(AsFloat(out[0]), 2.0f);
  EXPECT_EQ(AsFloat(out[6]), -1.0f);
}

// PTX ISA, cvt: zero if the source is not .f64 and the destination not .s64 or
// .u64, else 1 << (BitWidth(dst) - 1).
TEST(PtxFloatTest, NotANumberAsAnInteger) {
  const SnippetInput narrow = {.a = {Bits(kNan)}, .threads = 1};
  const SnippetInput wide = {.a = {0x7FF8000000000000ull}, .threads = 1};
  EXPECT_EQ(Run32("cvt.rzi.s32.f32 %r9, %f1;", narrow)[0], 0u);
  EXPECT_EQ(Run32("cvt.rzi.u32.f32 %r9, %f1;", narrow)[0], 0u);
  EXPECT_EQ(Run64("cvt.rzi.s64.f32 %d9, %f1;", narrow)[0],
            0x8000000000000000ull);
  EXPECT_EQ(Run64("cvt.rzi.u64.f32 %d9, %f1;", narrow)[0],
            0x8000000000000000ull);
  EXPECT_EQ(Run32("cvt.rzi.s32.f64 %r9, %d1;", wide)[0], 0x80000000u);
  EXPECT_EQ(Run32("cvt.rzi.u32.f64 %r9, %d1;", wide)[0], 0x80000000u);
  EXPECT_EQ(Run64("cvt.rzi.s64.f64 %d9, %d1;", wide)[0], 0x8000000000000000ull);
  // Other numbers saturate, whatever the source.
  const SnippetInput large = {
      .a = {std::bit_cast<uint64_t>(1e300), std::bit_cast<uint64_t>(-1e300)},
      .threads = 2};
  const auto out = Run32("cvt.rzi.s32.f64 %r9, %d1;", large);
  EXPECT_EQ(out[0], 0x7FFFFFFFu);
  EXPECT_EQ(out[1], 0x80000000u);
}

TEST(PtxFloatTest, IntegersToFloats) {
  Random random(8);
  SnippetInput input;
  for (int i = 0; i < 32; ++i) {
    input.a.push_back(random.Next() >> random.Below(60));
  }
  auto out = Run32("cvt.rn.f32.s32 %f9, %r1; mov.b32 %r9, %f9;", input);
  auto wide = Run32("cvt.rn.f32.u64 %f9, %d1; mov.b32 %r9, %f9;", input);
  auto down = Run32("cvt.rz.f32.u64 %f9, %d1; mov.b32 %r9, %f9;", input);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(AsFloat(out[i]),
              static_cast<float>(static_cast<int32_t>(input.a[i])));
    EXPECT_EQ(AsFloat(wide[i]), static_cast<float>(input.a[i]));
    // The greatest float that is not above: keep the upper 24 bits.
    const int drop = std::max(0, 40 - std::countl_zero(input.a[i]));
    EXPECT_EQ(AsFloat(down[i]), static_cast<float>(input.a[i] >> drop << drop));
  }
}

TEST(PtxFloatTest, IntegersToIntegers) {
  const SnippetInput input = {.a = {0x80, 0x17F, 0xFFFFFFFFu, 0x1234567890ull},
                              .threads = 4};
  EXPECT_EQ(Run32("cvt.s32.s8 %r9, %r1;", input)[0], 0xFFFFFF80u);
  EXPECT_EQ(Run32("cvt.u32.u8 %r9, %r1;", input)[1], 0x7Fu);
  EXPECT_EQ(Run64("cvt.s64.s32 %d9, %r1;", input)[2], ~0ull);
  EXPECT_EQ(Run64("cvt.u64.u32 %d9, %r1;", input)[2], 0xFFFFFFFFull);
  EXPECT_EQ(Run32("cvt.u32.u64 %r9, %d1;", input)[3], 0x34567890u);
  EXPECT_EQ(Run32("cvt.sat.s8.s32 %r9, %r1;", input)[1], 127u);
  EXPECT_EQ(Run32("cvt.sat.u8.s32 %r9, %r1;", input)[2], 0u);
  const SnippetInput pack = {.a = {300},
                             .b = {static_cast<uint64_t>(-5)},
                             .c = {0xABCD},
                             .threads = 1};
  EXPECT_EQ(Run32("cvt.pack.sat.s8.s32.b32 %r9, %r1, %r2, %r3;", pack)[0],
            0xABCD7FFBu);
}

}  // namespace
}  // namespace regatta::ptxsim

// Element-wise kernels as NVRTC compiles them, against the host's mathematics.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tests/compiler/ptxsim/kernel_launch.h"

namespace regatta::ptxsim {
namespace {

// The oldest and the newest code generator, and what is between.
constexpr const char* kArchitectures[] = {"compute_75", "compute_80",
                                          "compute_90", "compute_100"};

using Real = double;
struct FloatCase {
  const char* name;
  const char* expression;  // of x and y
  Real (*reference)(Real x, Real y);
  double low, high;  // of both operands
  // Allowed error in units of the result's last place; what the CUDA guide
  // states for the function, and one for our own rounding.
  double ulps = 2;
};

const FloatCase kFloatCases[] = {
    {"exp", "expf(x)", [](Real x, Real) { return std::exp(x); }, -60, 60, 3},
    {"exp2", "exp2f(x)", [](Real x, Real) { return std::exp2(x); }, -60, 60, 3},
    {"expm1", "expm1f(x)", [](Real x, Real) { return std::expm1(x); }, -3, 3,
     2},
    {"log", "logf(x)", [](Real x, Real) { return std::log(x); }, 1e-3, 1e4, 2},
    {"log2", "log2f(x)", [](Real x, Real) { return std::log2(x); }, 1e-3, 1e4,
     2},
    {"log1p", "log1pf(x)", [](Real x, Real) { return std::log1p(x); }, -0.9, 9,
     2},
    {"sin", "sinf(x)", [](Real x, Real) { return std::sin(x); }, -30, 30, 3},
    {"sin_large", "sinf(x)", [](Real x, Real) { return std::sin(x); }, 2e5, 3e9,
     3},
    {"cos", "cosf(x)", [](Real x, Real) { return std::cos(x); }, -30, 30, 3},
    {"tan", "tanf(x)", [](Real x, Real) { return std::tan(x); }, -30, 30, 5},
    {"tanh", "tanhf(x)", [](Real x, Real) { return std::tanh(x); }, -5, 5, 3},
    {"sqrt", "sqrtf(x)", [](Real x, Real) { return std::sqrt(x); }, 0, 1e6, 1},
    {"rsqrt", "rsqrtf(x)", [](Real x, Real) { return 1 / std::sqrt(x); }, 1e-6,
     1e6, 3},
    {"div", "x/y", [](Real x, Real y) { return x / y; }, -100, 100, 1},
    {"pow", "powf(x,y)", [](Real x, Real y) { return std::pow(x, y); }, 0.1, 9,
     5},
    {"erf", "erff(x)", [](Real x, Real) { return std::erf(x); }, -3, 3, 3},
    {"erfc", "erfcf(x)", [](Real x, Real) { return std::erfc(x); }, -3, 3, 5},
    {"fmod", "fmodf(x,y)", [](Real x, Real y) { return std::fmod(x, y); }, 0.5,
     900, 0},
    {"floor", "floorf(x)", [](Real x, Real) { return std::floor(x); }, -9, 9,
     0},
    {"ceil", "ceilf(x)", [](Real x, Real) { return std::ceil(x); }, -9, 9, 0},
    {"trunc", "truncf(x)", [](Real x, Real) { return std::trunc(x); }, -9, 9,
     0},
    {"round", "roundf(x)", [](Real x, Real) { return std::round(x); }, -9, 9,
     0},
    {"rint", "rintf(x)", [](Real x, Real) { return std::nearbyint(x); }, -9, 9,
     0},
    {"min", "fminf(x,y)", [](Real x, Real y) { return std::fmin(x, y); }, -9, 9,
     0},
    {"max", "fmaxf(x,y)", [](Real x, Real y) { return std::fmax(x, y); }, -9, 9,
     0},
    {"abs", "fabsf(x)", [](Real x, Real) { return std::fabs(x); }, -9, 9, 0},
    {"sinh", "sinhf(x)", [](Real x, Real) { return std::sinh(x); }, -5, 5, 4},
    {"cosh", "coshf(x)", [](Real x, Real) { return std::cosh(x); }, -5, 5, 4},
    {"asin", "asinf(x)", [](Real x, Real) { return std::asin(x); }, -1, 1, 4},
    {"acos", "acosf(x)", [](Real x, Real) { return std::acos(x); }, -1, 1, 4},
    {"atan", "atanf(x)", [](Real x, Real) { return std::atan(x); }, -9, 9, 3},
    {"atan2", "atan2f(x,y)", [](Real x, Real y) { return std::atan2(x, y); },
     -9, 9, 4},
    {"cbrt", "cbrtf(x)", [](Real x, Real) { return std::cbrt(x); }, -99, 99, 2},
    {"hypot", "hypotf(x,y)", [](Real x, Real y) { return std::hypot(x, y); },
     -99, 99, 4},
    {"lgamma", "lgammaf(x)", [](Real x, Real) { return std::lgamma(x); }, 3, 30,
     7},
    {"double_sin", "(float)(sin((double)x*1e15)+pow((double)y,1.5))",
     [](Real x, Real y) { return std::sin(x * 1e15) + std::pow(y, 1.5); }, 3,
     900, 1},
    // The approximate forms, with what the guide allows them in this range.
    {"fast_exp", "__expf(x)", [](Real x, Real) { return std::exp(x); }, -4, 4,
     8},
    {"fast_log", "__logf(x)", [](Real x, Real) { return std::log(x); }, 2, 1e4,
     3},
    {"fast_sin", "__sinf(x)+2.f", [](Real x, Real) { return std::sin(x) + 2; },
     -3, 3, 8},
    {"fast_div", "__fdividef(x,y)", [](Real x, Real y) { return x / y; }, 1,
     100, 2},
    {"fast_pow", "__powf(x,y)", [](Real x, Real y) { return std::pow(x, y); },
     1, 3, 24},
    {"select", "x<y?x:y*2.f", [](Real x, Real y) { return x < y ? x : y * 2; },
     -9, 9, 0},
    {"copysign", "copysignf(x,y)",
     [](Real x, Real y) { return std::copysign(x, y); }, -9, 9, 0},
    {"saturate", "__saturatef(x)",
     [](Real x, Real) { return std::fmin(std::fmax(x, 0.0), 1.0); }, -2, 2, 0},
    {"scale", "ldexpf(x,3)", [](Real x, Real) { return x * 8; }, -9, 9, 0},
    {"double", "(float)(exp((double)x)/(double)y)",
     [](Real x, Real y) { return std::exp(x) / y; }, 0.5, 9, 1},
    {"to_int", "(float)((int)x*3)",
     [](Real x, Real) { return std::trunc(x) * 3; }, -9e4, 9e4, 0},
    {"to_long", "(float)((long long)x*3)",
     [](Real x, Real) { return std::trunc(x) * 3; }, -9e4, 9e4, 0},
};

TEST(NvrtcElementwiseTest, FloatFunctions) {
  SKIP_WITHOUT_NVRTC();
  std::string source;
  for (const FloatCase& c : kFloatCases) {
    absl::StrAppend(
        &source, "extern \"C\" __global__ void k_", c.name,
        "(const float* __restrict__ a, const float* __restrict__ b,"
        " float* o, int n) { int i = blockIdx.x * blockDim.x + "
        "threadIdx.x; if (i < n) { float x = a[i], y = b[i]; (void)y; o[i] = ",
        c.expression, "; } }\n");
  }
  constexpr int kCount = 200;
  Random random(1);
  for (const char* architecture : kArchitectures) {
    const PtxModule module = CompileModule(source, architecture);
    for (const FloatCase& c : kFloatCases) {
      std::vector<float> a(kCount), b(kCount);
      for (auto* values : {&a, &b}) {
        for (float& value : *values) {
          value = static_cast<float>(c.low + (c.high - c.low) * random.Unit());
        }
      }
      TestMemory memory;
      const uint64_t out = memory.Put(std::vector<float>(kCount));
      RunClean(module,
               {.entry = absl::StrCat("k_", c.name),
                .grid = {2, 1, 1},
                .group = {128, 1, 1},
                .arguments = {memory.Put(a), memory.Put(b), out, kCount}},
               memory);
      const auto have = memory.Get<float>(out, kCount);
      for (int i = 0; i < kCount; ++i) {
        const double want = c.reference(a[i], b[i]);
        const double ulp = std::ldexp(
            1.0, std::max(std::ilogb(want == 0 ? 1e-30 : want), -126) - 23);
        ASSERT_LE(std::fabs(have[i] - want), (c.ulps + 0.5) * ulp)
            << architecture << " " << c.expression << " of " << a[i] << ", "
            << b[i] << " gave " << have[i] << ", not " << want;
      }
    }
  }
}

struct IntCase {
  const char* name;
  const char* expression;
  int32_t (*reference)(int32_t x, int32_t y);
};
using U = uint32_t;
using L = int64_t;

const IntCase kIntCases[] = {
    {"div", "x/(y|1)",
     [](int x, int y) { return static_cast<int>(L{x} / (y | 1)); }},
    {"mod", "x%(y|1)",
     [](int x, int y) { return static_cast<int>(L{x} % (y | 1)); }},
    {"udiv", "(unsigned)x/(unsigned)(y|1)",
     [](int x, int y) { return static_cast<int>(U(x) / U(y | 1)); }},
    {"div7", "x/7", [](int x, int) { return x / 7; }},
    {"mod10", "x%10", [](int x, int) { return x % 10; }},
    {"udiv7", "(unsigned)x/7u",
     [](int x, int) { return static_cast<int>(U(x) / 7u); }},
    {"shifts", "(x<<(y&31))^(x>>(y&31))",
     [](int x, int y) {
       return static_cast<int>(U(x) << (y & 31)) ^ (x >> (y & 31));
     }},
    {"minmax", "min(x,y)*3-max(x,5)",
     [](int x, int y) {
       return static_cast<int>(U(std::min(x, y)) * 3 - U(std::max(x, 5)));
     }},
    {"clz", "__clz(x)+__popc(y)*100",
     [](int x, int y) {
       return std::countl_zero(U(x)) + std::popcount(U(y)) * 100;
     }},
    {"mulhi", "__mulhi(x,y)",
     [](int x, int y) { return static_cast<int>((L{x} * y) >> 32); }},
    {"long", "(int)(((long long)x*y)>>7)",
     [](int x, int y) { return static_cast<int>((L{x} * y) >> 7); }},
    {"longdiv", "(int)((((long long)x*y)+12345)/(y|1))",
     [](int x, int y) {
       return static_cast<int>((L{x} * y + 12345) / (y | 1));
     }},
    {"bytes", "(signed char)(x+y)*(signed char)x",
     [](int x, int y) {
       return static_cast<int8_t>(U(x) + U(y)) * static_cast<int8_t>(x);
     }},
    {"shorts", "(short)(x*y)>>1",
     [](int x, int y) { return static_cast<int16_t>(U(x) * U(y)) >> 1; }},
    {"logic", "((x<y)&&(y>3))||(x!=5)?x&y:x|~y",
     [](int x, int y) {
       return ((x < y) && (y > 3)) || (x != 5) ? x & y : x | ~y;
     }},
    {"switch", "pick(x,y)",
     [](int x, int y) {
       switch (x & 7) {
         case 0:
           return y;
         case 1:
           return static_cast<int>(U(y) * 3);
         case 2:
           return y / 5;
         case 3:
           return x ^ y;
         case 4:
           return static_cast<int>(U(x) - U(y));
         case 5:
           return 77;
         case 6:
           return x | 9;
         default:
           return -1;
       }
     }},
    {"call", "far_away(x,y&15)",
     [](int x, int y) {
       U r = 0;
       for (int i = 0; i < (y & 15); ++i) r = r * U(x) + U(i);
       return static_cast<int>(r);
     }},
    {"local", "local_array(x,y)",
     [](int x, int y) {
       int a[16];
       for (int i = 0; i < 16; ++i) a[i] = static_cast<int>(U(i) * U(x));
       U s = 0;
       for (int i = 0; i < 5; ++i) s += U(a[U(i * 3 + y) & 15]);
       return static_cast<int>(s);
     }},
};

constexpr char kIntHelpers[] = R"(
__device__ int pick(int x, int y) {
  switch (x & 7) { case 0: return y; case 1: return y * 3; case 2: return y / 5;
    case 3: return x ^ y; case 4: return x - y; case 5: return 77;
    case 6: return x | 9; default: return -1; }
}
__device__ __noinline__ int far_away(int x, int n) {
  unsigned r = 0; for (int i = 0; i < n; ++i) r = r * x + i; return (int)r;
}
__device__ int local_array(int x, int y) {
  int a[16];
  for (int i = 0; i < 16; ++i) a[i] = i * x;
  int s = 0;
  for (int i = 0; i < 5; ++i) s += a[(unsigned)(i * 3 + y) & 15];
  return s;
}
)";

TEST(NvrtcElementwiseTest, IntegerFunctions) {
  SKIP_WITHOUT_NVRTC();
  std::string source = kIntHelpers;
  for (const IntCase& c : kIntCases) {
    absl::StrAppend(&source, "extern \"C\" __global__ void k_", c.name,
                    "(const int* a, const int* b, int* o, int n) {"
                    " int i = blockIdx.x * blockDim.x + threadIdx.x;"
                    " if (i < n) { int x = a[i], y = b[i]; (void)y; o[i] = ",
                    c.expression, "; } }\n");
  }
  constexpr int kCount = 333;
  Random random(2);
  for (const char* architecture : kArchitectures) {
    const PtxModule module = CompileModule(source, architecture);
    for (const IntCase& c : kIntCases) {
      std::vector<int32_t> a(kCount), b(kCount);
      for (auto* values : {&a, &b}) {
        for (int32_t& value : *values) {
          value = static_cast<int32_t>(random.Next()) >> random.Below(31);
        }
      }
      TestMemory memory;
      const uint64_t out = memory.Put(std::vector<int32_t>(kCount));
      RunClean(module,
               {.entry = absl::StrCat("k_", c.name),
                .grid = {6, 1, 1},
                .group = {64, 1, 1},
                .arguments = {memory.Put(a), memory.Put(b), out, kCount}},
               memory);
      const auto have = memory.Get<int32_t>(out, kCount);
      for (int i = 0; i < kCount; ++i) {
        ASSERT_EQ(have[i], c.reference(a[i], b[i]))
            << architecture << " " << c.expression << " of " << a[i] << ", "
            << b[i];
      }
    }
  }
}

}  // namespace
}  // namespace regatta::ptxsim

// What each operator means, written out as loops: nothing else notices an
// expression that computes something other than its name.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compiler/interp/interpreter.h"
#include "compiler/module/half.h"
#include "compiler/ops/op.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A call, its random inputs by name, and the interpreter's result.
class Call {
 public:
  explicit Call(const std::string& text) {
    const auto parsed = ParseWorkload(text);
    EXPECT_TRUE(parsed.ok()) << text << ": " << StatusText(parsed);
    if (!parsed.ok()) return;
    workload_ = *parsed;
    Random random(text.size());
    for (int id : workload_.TensorsWithRole(TensorRole::kInput)) {
      const TensorDecl& tensor = workload_.tensors[id];
      TensorValues values(tensor.Elements());
      for (double& value : values) {
        value = IsFloat(tensor.dtype)
                    ? RoundToDType(random.Unit() * 2 - 1, tensor.dtype)
                    : static_cast<double>(random.Below(17)) - 8;
      }
      inputs_.push_back(std::move(values));
    }
    result_ = Interpret(workload_, inputs_)[0];
  }

  const TensorValues& operator[](const std::string& name) const {
    const auto ids = workload_.TensorsWithRole(TensorRole::kInput);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (workload_.tensors[ids[i]].name == name) return inputs_[i];
    }
    ADD_FAILURE() << workload_.text << " has no input " << name;
    static const TensorValues none;
    return none;
  }
  const TensorDecl& Output() const { return workload_.tensors.back(); }

  // The result with other values for one input.
  TensorValues With(const std::string& name, const TensorValues& values) {
    const auto ids = workload_.TensorsWithRole(TensorRole::kInput);
    std::vector<TensorValues> inputs = inputs_;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (workload_.tensors[ids[i]].name == name) inputs[i] = values;
    }
    return Interpret(workload_, inputs)[0];
  }

  // Every element is `expected`, given its offset, rounded to its type; floats
  // may differ by what one rounding of an intermediate makes.
  void Expect(const std::function<double(int64_t)>& expected) const {
    const DType type = Output().dtype;
    const double unit = type == DType::kF16    ? 0x1p-10
                        : type == DType::kBF16 ? 0x1p-7
                        : IsFloat(type)        ? 1e-6
                                               : 0;
    for (size_t i = 0; i < result_.size(); ++i) {
      const double want = RoundToDType(expected(i), type);
      ASSERT_NEAR(result_[i], want, unit * std::max(1.0, std::fabs(want)))
          << workload_.text << " at " << i;
    }
  }
  size_t size() const { return result_.size(); }

 private:
  Workload workload_;
  std::vector<TensorValues> inputs_;
  TensorValues result_;
};

double Act(const std::string& name, double x) {
  if (name == "relu") return x > 0 ? x : 0;
  if (name == "gelu") return x * 0.5 * std::erfc(-x / std::sqrt(2));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  return x;
}

// Round to nearest, halves to even, as i8 holds it.
double Requantised(double sum, double scale) {
  const double scaled =
      static_cast<float>(static_cast<float>(sum) * static_cast<float>(scale));
  const double low = std::floor(scaled), part = scaled - low;
  const bool up = part > 0.5 || (part == 0.5 && std::fmod(low, 2) != 0);
  return std::min(127.0, std::max(-128.0, low + (up ? 1 : 0)));
}

TEST(OperatorMeaningTest, BatchMatmul) {
  for (const char* dtype : {"f32", "f16", "bf16", "i8"}) {
    const Call run(absl::StrCat("batch_matmul(b=3,m=4,n=5,k=7,dtype=", dtype,
                               ",activation=relu)"));
    run.Expect([&](int64_t at) {
      const int64_t j = at % 5, i = at / 5 % 4, b = at / 20;
      double sum = 0;
      for (int k = 0; k < 7; ++k) {
        sum += run["A"][(b * 4 + i) * 7 + k] * run["B"][(b * 7 + k) * 5 + j];
      }
      return Act("relu", sum);
    });
  }
}

TEST(OperatorMeaningTest, DenseWithEveryActivationAndType) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    for (const char* act : {"none", "relu", "gelu", "sigmoid", "tanh"}) {
      for (const bool bias : {true, false}) {
        const Call run(absl::StrCat("dense(m=3,n=5,k=9,activation=", act,
                                   ",bias=", bias ? "yes" : "no",
                                   ",dtype=", dtype, ")"));
        run.Expect([&](int64_t at) {
          const int64_t j = at % 5, i = at / 5;
          double sum = bias ? run["bias"][j] : 0;
          for (int k = 0; k < 9; ++k) {
            sum += run["X"][i * 9 + k] * run["W"][k * 5 + j];
          }
          return Act(act, sum);
        });
      }
    }
  }
}

TEST(OperatorMeaningTest, DenseOfIntegersAndRequantisation) {
  const auto sum = [](const Call& run, int64_t i, int64_t j) {
    double total = run["bias"][j];
    for (int k = 0; k < 30; ++k) {
      total += run["X"][i * 30 + k] * run["W"][k * 5 + j];
    }
    return total;
  };
  const Call plain("dense(m=4,n=5,k=30,dtype=i8,activation=relu)");
  EXPECT_EQ(plain.Output().dtype, DType::kI32);
  plain.Expect(
      [&](int64_t at) { return Act("relu", sum(plain, at / 5, at % 5)); });
  const Call narrow("dense(m=4,n=5,k=30,dtype=i8,out_dtype=i8)");
  EXPECT_EQ(narrow.Output().dtype, DType::kI8);
  narrow.Expect([&](int64_t at) {
    return Requantised(sum(narrow, at / 5, at % 5), narrow["scale"][at % 5]);
  });
  const Call wide("dense(m=4,n=5,k=30,dtype=i8,out_dtype=f32,activation=gelu)");
  wide.Expect([&](int64_t at) {
    return Act("gelu", sum(wide, at / 5, at % 5) * wide["scale"][at % 5]);
  });
}

TEST(OperatorMeaningTest, RequantisationRoundsHalvesToEvenAndClamps) {
  const auto workload =
      *ParseWorkload("dense(m=1,n=8,k=1,dtype=i8,out_dtype=i8)");
  std::vector<TensorValues> inputs;
  for (int id : workload.TensorsWithRole(TensorRole::kInput)) {
    const std::string& name = workload.tensors[id].name;
    if (name == "X") inputs.push_back({1});
    if (name == "W") inputs.push_back({1, 3, 5, -1, -3, 100, -100, 7});
    if (name == "bias") inputs.push_back(TensorValues(8, 0));
    if (name == "scale") inputs.push_back({.5, .5, .5, .5, .5, 2, 2, 0.1});
  }
  // 0.5 1.5 2.5 -0.5 -1.5 200 -200 0.7
  EXPECT_EQ(Interpret(workload, inputs)[0],
            (TensorValues{0, 2, 2, 0, -2, 127, -128, 1}));
}

// Everything that conv2d and depthwise_conv2d take; NHWC and NCHW.
struct Conv {
  int64_t n, h, w, ci, co, kh, kw, groups;
  int64_t sh = 1, sw = 1, dh = 1, dw = 1, top = 0, bottom = 0, left = 0,
          right = 0;
};

void ExpectConv(const std::string& text, const Conv& p, bool channels_last,
                const std::string& activation = "none", bool bias = false) {
  const Call run(text);
  const int64_t oh =
      (p.h + p.top + p.bottom - (p.kh - 1) * p.dh - 1) / p.sh + 1;
  const int64_t ow =
      (p.w + p.left + p.right - (p.kw - 1) * p.dw - 1) / p.sw + 1;
  ASSERT_EQ(static_cast<int64_t>(run.size()), p.n * oh * ow * p.co) << text;
  const int64_t cg = p.ci / p.groups, og = p.co / p.groups;
  run.Expect([&](int64_t at) {
    int64_t n, y, x, o;
    if (channels_last) {
      o = at % p.co, x = at / p.co % ow, y = at / p.co / ow % oh;
    } else {
      x = at % ow, y = at / ow % oh, o = at / ow / oh % p.co;
    }
    n = at / (p.co * oh * ow);
    const int64_t g = o / og;
    double sum = bias ? run["bias"][o] : 0;
    for (int64_t r = 0; r < p.kh; ++r) {
      for (int64_t s = 0; s < p.kw; ++s) {
        const int64_t yy = y * p.sh + r * p.dh - p.top;
        const int64_t xx = x * p.sw + s * p.dw - p.left;
        if (yy < 0 || yy >= p.h || xx < 0 || xx >= p.w) continue;
        for (int64_t c = 0; c < cg; ++c) {
          const int64_t ic = g * cg + c;
          sum += channels_last
                     ? run["X"][((n * p.h + yy) * p.w + xx) * p.ci + ic] *
                           run["W"][((r * p.kw + s) * cg + c) * p.co + o]
                     : run["X"][((n * p.ci + ic) * p.h + yy) * p.w + xx] *
                           run["W"][((o * cg + c) * p.kh + r) * p.kw + s];
        }
      }
    }
    return Act(activation, sum);
  });
}

TEST(OperatorMeaningTest, ConvolutionsWithGroupsStridesPaddingAndBias) {
  for (const bool last : {true, false}) {
    const std::string layout = last ? ")" : ",layout=NCHW)";
    ExpectConv("conv2d(n=2,h=7,w=6,ci=6,co=9,kh=3,kw=3,pad=1,groups=3" + layout,
               {2, 7, 6, 6, 9, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, last);
    ExpectConv(
        "conv2d(n=1,h=8,w=9,ci=4,co=6,kh=3,kw=2,groups=2,stride_h=2,"
        "dilation_w=3,pad_top=2,pad_right=1,bias=yes,activation=tanh" +
            layout,
        {1, 8, 9, 4, 6, 3, 2, 2, 2, 1, 1, 3, 2, 0, 0, 1}, last, "tanh", true);
    ExpectConv(
        "conv2d(n=1,h=5,w=6,ci=4,co=8,kh=3,kw=3,groups=4,dtype=bf16" + layout,
        {1, 5, 6, 4, 8, 3, 3, 4}, last);
    ExpectConv(
        "depthwise_conv2d(n=2,h=6,w=7,c=5,kh=3,kw=3,stride=2,pad=1" + layout,
        {2, 6, 7, 5, 5, 3, 3, 5, 2, 2, 1, 1, 1, 1, 1, 1}, last);
    ExpectConv(
        "depthwise_conv2d(n=1,h=6,w=7,c=5,kh=3,kw=3,multiplier=3,"
        "dtype=f16,bias=yes,activation=relu" +
            layout,
        {1, 6, 7, 5, 15, 3, 3, 5}, last, "relu", true);
    ExpectConv("depthwise_conv2d(n=1,h=6,w=7,c=5,kh=3,kw=3,dtype=i8" + layout,
               {1, 6, 7, 5, 5, 3, 3, 5}, last);
  }
}

TEST(OperatorMeaningTest, ConvolutionsInBlocksOfChannels) {
  const Call run(
      "conv2d(n=1,h=5,w=6,ci=4,co=6,kh=3,kw=3,pad=1,layout=NCHWc,"
      "block=2)");
  run.Expect([&](int64_t at) {
    const int64_t oi = at % 2, x = at / 2 % 6, y = at / 12 % 5, ob = at / 60;
    double sum = 0;
    for (int64_t c = 0; c < 4; ++c)
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t s = 0; s < 3; ++s) {
          const int64_t yy = y + r - 1, xx = x + s - 1;
          if (yy < 0 || yy >= 5 || xx < 0 || xx >= 6) continue;
          sum += run["X"][((c / 2 * 5 + yy) * 6 + xx) * 2 + c % 2] *
                 run["W"]
                    [(((ob * 2 + c / 2) * 3 + r) * 3 + s) * 4 + c % 2 * 2 + oi];
        }
    return sum;
  });
  const Call depthwise(
      "depthwise_conv2d(n=1,h=5,w=6,c=6,kh=2,kw=2,layout=NCHWc,block=3,"
      "bias=yes)");
  depthwise.Expect([&](int64_t at) {
    const int64_t ci = at % 3, x = at / 3 % 5, y = at / 15 % 4, cb = at / 60;
    double sum = depthwise["bias"][cb * 3 + ci];
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t s = 0; s < 2; ++s) {
        sum += depthwise["X"][((cb * 5 + y + r) * 6 + x + s) * 3 + ci] *
               depthwise["W"][((cb * 2 + r) * 2 + s) * 3 + ci];
      }
    return sum;
  });
}

struct Transposed {
  int64_t n, h, w, ci, co, kh, kw, s, pad, extra;
};

// As it is defined: every input element adds to a window of the output.
void ExpectTransposed(const Transposed& p, bool channels_last, bool bias) {
  const Call run(absl::StrCat(
      "conv2d_transpose(n=", p.n, ",h=", p.h, ",w=", p.w, ",ci=", p.ci,
      ",co=", p.co, ",kh=", p.kh, ",kw=", p.kw, ",stride=", p.s, ",pad=", p.pad,
      ",out_pad=", p.extra, ",layout=", channels_last ? "NHWC" : "NCHW",
      ",bias=", bias ? "yes" : "no", ")"));
  const int64_t oh = (p.h - 1) * p.s + p.kh - 2 * p.pad + p.extra;
  const int64_t ow = (p.w - 1) * p.s + p.kw - 2 * p.pad + p.extra;
  TensorValues y(p.n * oh * ow * p.co, 0);
  ASSERT_EQ(run.size(), y.size());
  const auto place = [&](int64_t n, int64_t a, int64_t b, int64_t o) {
    return channels_last ? ((n * oh + a) * ow + b) * p.co + o
                         : ((n * p.co + o) * oh + a) * ow + b;
  };
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t i = 0; i < p.h; ++i)
      for (int64_t j = 0; j < p.w; ++j)
        for (int64_t c = 0; c < p.ci; ++c)
          for (int64_t r = 0; r < p.kh; ++r)
            for (int64_t s = 0; s < p.kw; ++s)
              for (int64_t o = 0; o < p.co; ++o) {
                const int64_t a = i * p.s + r - p.pad, b = j * p.s + s - p.pad;
                if (a < 0 || a >= oh || b < 0 || b >= ow) continue;
                y[place(n, a, b, o)] +=
                    channels_last
                        ? run["X"][((n * p.h + i) * p.w + j) * p.ci + c] *
                              run["W"][((r * p.kw + s) * p.ci + c) * p.co + o]
                        : run["X"][((n * p.ci + c) * p.h + i) * p.w + j] *
                              run["W"][((o * p.ci + c) * p.kh + r) * p.kw + s];
              }
  run.Expect([&](int64_t at) {
    const int64_t o = channels_last ? at % p.co : at / ow / oh % p.co;
    return y[at] + (bias ? run["bias"][o] : 0);
  });
}

TEST(OperatorMeaningTest, TransposedConvolutions) {
  const Transposed cases[] = {
      {1, 4, 5, 3, 2, 3, 3, 1, 0, 0}, {2, 4, 5, 3, 2, 3, 3, 1, 1, 0},
      {1, 4, 5, 3, 2, 2, 2, 2, 0, 0}, {1, 4, 5, 3, 2, 4, 4, 2, 1, 0},
      {1, 4, 5, 3, 2, 3, 3, 2, 1, 1}, {1, 4, 5, 3, 2, 5, 3, 3, 2, 1},
      {1, 4, 5, 3, 2, 1, 2, 3, 0, 2}, {1, 3, 3, 2, 2, 4, 4, 2, 3, 0},
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0}};
  for (const Transposed& test : cases) {
    ExpectTransposed(test, true, false);
    ExpectTransposed(test, false, true);
  }
}

struct Pool {
  int64_t n, h, w, c, kh, kw, s, pad;
};

void ExpectPool(const Pool& p, const std::string& kind, bool count_all,
                const std::string& dtype) {
  const bool greatest = kind == "max" || kind == "global_max";
  const std::string window = kind == "max" || kind == "avg"
                                 ? absl::StrCat(",kh=", p.kh, ",kw=", p.kw,
                                                ",stride=", p.s, ",pad=", p.pad)
                                 : "";
  const Call run(absl::StrCat("pool2d(n=", p.n, ",h=", p.h, ",w=", p.w,
                             ",c=", p.c, window, ",kind=", kind,
                             ",count=", count_all ? "window" : "image",
                             ",dtype=", dtype, ")"));
  const int64_t oh = (p.h + 2 * p.pad - p.kh) / p.s + 1;
  const int64_t ow = (p.w + 2 * p.pad - p.kw) / p.s + 1;
  ASSERT_EQ(static_cast<int64_t>(run.size()), p.n * oh * ow * p.c);
  run.Expect([&](int64_t at) {
    const int64_t c = at % p.c, x = at / p.c % ow, y = at / p.c / ow % oh,
                  n = at / (p.c * ow * oh);
    double sum = 0, most = -1e30;
    int64_t count = 0;
    for (int64_t r = 0; r < p.kh; ++r)
      for (int64_t s = 0; s < p.kw; ++s) {
        const int64_t yy = y * p.s + r - p.pad, xx = x * p.s + s - p.pad;
        if (yy < 0 || yy >= p.h || xx < 0 || xx >= p.w) continue;
        const double value = run["X"][((n * p.h + yy) * p.w + xx) * p.c + c];
        sum += value;
        most = std::max(most, value);
        ++count;
      }
    if (greatest) return most;
    const double mean = sum / (count_all ? p.kh * p.kw : count);
    return dtype == "i8" ? std::nearbyint(mean) : mean;
  });
}

TEST(OperatorMeaningTest, Pooling) {
  for (const char* dtype : {"f32", "f16", "bf16", "i8"}) {
    ExpectPool({2, 7, 6, 3, 3, 3, 2, 1}, "max", false, dtype);
    ExpectPool({1, 6, 7, 3, 2, 2, 2, 0}, "avg", false, dtype);
    ExpectPool({1, 6, 7, 3, 4, 2, 1, 1}, "avg", false, dtype);
    ExpectPool({1, 6, 7, 3, 4, 2, 1, 1}, "avg", true, dtype);
    ExpectPool({2, 4, 4, 3, 4, 4, 1, 0}, "global_avg", false, dtype);
    ExpectPool({2, 5, 3, 3, 5, 3, 1, 0}, "global_max", false, dtype);
  }
}

TEST(OperatorMeaningTest, Normalisations) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const std::string size =
        absl::StrCat("(rows=3,cols=11,eps=0.01,dtype=", dtype, ")");
    const Call layer("layer_norm" + size);
    layer.Expect([&](int64_t at) {
      const TensorValues& x = layer["X"];
      const int64_t i = at / 11, j = at % 11;
      double mean = 0, variance = 0;
      for (int k = 0; k < 11; ++k) mean += x[i * 11 + k] / 11;
      for (int k = 0; k < 11; ++k) {
        variance += std::pow(x[i * 11 + k] - mean, 2) / 11;
      }
      return (x[at] - mean) / std::sqrt(variance + 0.01) * layer["gamma"][j] +
             layer["beta"][j];
    });
    const Call rms("rms_norm" + size);
    rms.Expect([&](int64_t at) {
      const TensorValues& x = rms["X"];
      double square = 0;
      for (int k = 0; k < 11; ++k) {
        square += std::pow(x[at / 11 * 11 + k], 2) / 11;
      }
      return x[at] / std::sqrt(square + 0.01) * rms["gamma"][at % 11];
    });
    const Call logs(
        absl::StrCat("log_softmax(rows=3,cols=11,dtype=", dtype, ")"));
    logs.Expect([&](int64_t at) {
      const TensorValues& x = logs["X"];
      double sum = 0;
      for (int k = 0; k < 11; ++k) sum += std::exp(x[at / 11 * 11 + k]);
      return x[at] - std::log(sum);
    });
  }
}

TEST(OperatorMeaningTest, LogSoftmaxOfLargeValuesIsFinite) {
  Call run("log_softmax(rows=1,cols=2)");
  const TensorValues y = run.With("X", {1000, 1001});
  EXPECT_NEAR(y[0], -1.31326169, 1e-6);
  EXPECT_NEAR(y[1], -0.31326169, 1e-6);
}

TEST(OperatorMeaningTest, ChainsOfFunctions) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const Call run(absl::StrCat(
        "elementwise(shape=3x7,chain=square+neg+exp+silu+gelu,dtype=", dtype,
        ")"));
    run.Expect([&](int64_t at) {
      const double e = std::exp(-run["X"][at] * run["X"][at]);
      return Act("gelu", e / (1 + std::exp(-e)));
    });
  }
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"abs+sqrt", [](double x) { return std::sqrt(std::fabs(x)); }},
      {"square+rsqrt", [](double x) { return 1 / std::sqrt(x * x); }},
      {"exp+log", [](double x) { return x; }},
      {"neg+floor", [](double x) { return std::floor(-x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"erf", [](double x) { return std::erf(x); }}};
  for (const auto& [chain, function] : functions) {
    const Call run(absl::StrCat("elementwise(shape=19,chain=", chain, ")"));
    run.Expect([&](int64_t at) { return function(run["X"][at]); });
  }
}

TEST(OperatorMeaningTest, BroadcastsAlignLastDimensions) {
  const std::pair<const char*, double (*)(double, double)> kinds[] = {
      {"add", [](double a, double b) { return a + b; }},
      {"sub", [](double a, double b) { return a - b; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"div", [](double a, double b) { return a / b; }},
      {"max", [](double a, double b) { return a > b ? a : b; }},
      {"min", [](double a, double b) { return a < b ? a : b; }}};
  for (const auto& [kind, function] : kinds) {
    const Call run(absl::StrCat("binary(a=2x1x5,b=3x5,kind=", kind, ")"));
    EXPECT_EQ(run.Output().shape, (std::vector<int64_t>{2, 3, 5}));
    run.Expect([&](int64_t at) {
      return function(run["A"][at / 15 * 5 + at % 5], run["B"][at % 15]);
    });
  }
  const Call integers("binary(a=4,b=3x1,kind=mul,dtype=i8,activation=relu)");
  EXPECT_EQ(integers.Output().dtype, DType::kI32);
  integers.Expect([&](int64_t at) {
    return Act("relu", integers["A"][at % 4] * integers["B"][at / 4]);
  });
}

TEST(OperatorMeaningTest, ReductionsOverAnyDimensions) {
  for (const char* dtype : {"f32", "f16", "bf16", "i8"}) {
    for (const std::string kind :
         {"sum", "prod", "max", "min", "mean", "argmax", "argmin"}) {
      if (std::string(dtype) == "i8" && kind == "mean") continue;
      // 3 x 4 x 5, over the first and last.
      const Call run(absl::StrCat("reduce(shape=3x4x5,axes=0x2,kind=", kind,
                                 ",dtype=", dtype, ")"));
      run.Expect([&](int64_t at) {
        double sum = 0, product = 1;
        int64_t most = 0, least = 0;
        const auto x = [&](int64_t place) {
          return run["X"][(place / 5 * 4 + at) * 5 + place % 5];
        };
        for (int64_t place = 0; place < 15; ++place) {
          sum += x(place);
          product *= x(place);
          if (x(place) > x(most)) most = place;
          if (x(place) < x(least)) least = place;
        }
        if (kind == "sum") return sum;
        if (kind == "prod") {
          return std::string(dtype) == "i8"
                     ? static_cast<double>(
                           static_cast<int32_t>(static_cast<int64_t>(product)))
                     : product;
        }
        if (kind == "mean") return sum / 15;
        if (kind == "max") return x(most);
        if (kind == "min") return x(least);
        return static_cast<double>(kind == "argmax" ? most : least);
      });
    }
  }
  const Call all("reduce(shape=4x5,axes=0x1)");
  EXPECT_EQ(all.Output().shape, (std::vector<int64_t>{1}));
  all.Expect([&](int64_t) {
    double sum = 0;
    for (const double x : all["X"]) sum += x;
    return sum;
  });
}

TEST(OperatorMeaningTest, TheFirstGreatestWinsAndANaNIsGreatest) {
  Call most("reduce(shape=2x4,axes=1,kind=argmax)");
  EXPECT_EQ(most.With("X", {1, 7, 7, 2, 5, kNaN, 9, kNaN}),
            (TensorValues{1, 1}));
  Call least("reduce(shape=2x4,axes=1,kind=argmin)");
  EXPECT_EQ(least.With("X", {3, -7, 7, -7, 5, 4, kNaN, 1}),
            (TensorValues{1, 2}));
}

TEST(OperatorMeaningTest, NaNSurvivesMaxAndMinWhereverItStands) {
  for (const char* kind : {"max", "min"}) {
    Call run(absl::StrCat("reduce(shape=3x3,axes=1,kind=", kind, ")"));
    const TensorValues y = run.With("X", {kNaN, 1, 2, 1, kNaN, 2, 1, 2, kNaN});
    for (const double value : y) EXPECT_TRUE(std::isnan(value)) << kind;
  }
}

TEST(OperatorMeaningTest, TransposeConcatSliceAndGather) {
  for (const std::string dtype : {"f32", "f16", "bf16", "i8"}) {
    const std::string type = absl::StrCat(",dtype=", dtype, ")");
    const Call turned("transpose(shape=2x3x4,perm=2x0x1" + type);
    EXPECT_EQ(turned.Output().shape, (std::vector<int64_t>{4, 2, 3}));
    turned.Expect([&](int64_t at) {
      const int64_t k = at / 6, i = at / 3 % 2, j = at % 3;
      return turned["X"][(i * 3 + j) * 4 + k];
    });
    const Call joined("concat(shape=2x6x3,axis=1,sizes=1x3x2" + type);
    joined.Expect([&](int64_t at) {
      const int64_t k = at % 3, j = at / 3 % 6, i = at / 18;
      if (j < 1) return joined["X0"][i * 3 + k];
      if (j < 4) return joined["X1"][(i * 3 + j - 1) * 3 + k];
      return joined["X2"][(i * 2 + j - 4) * 3 + k];
    });
    const Call part("slice(shape=5x9,begin=1x2,size=2x3,step=3x2" + type);
    part.Expect([&](int64_t at) {
      return part["X"][(1 + 3 * (at / 3)) * 9 + 2 + 2 * (at % 3)];
    });
    Call rows("gather(rows=4,cols=3,count=5" + type);
    const TensorValues y = rows.With("picked", {2, 0, 3, -1, 4});
    for (int64_t at = 0; at < 15; ++at) {
      const int64_t row = std::vector<int64_t>{2, 0, 3, -1, 4}[at / 3];
      EXPECT_EQ(y[at], row < 0 || row > 3 ? 0 : rows["X"][row * 3 + at % 3]);
    }
  }
}

TEST(OperatorMeaningTest, PositionsThatCarryRunOnFromRowToRow) {
  const auto parsed = ParseWorkload(
      "Y[i,j] = pad(X[(6*i+j-2)/4,(6*i+j-2)%4], 9) where i=3, j=6, "
      "X=f32[3,4]");
  ASSERT_STATUS_OK(parsed);
  TensorValues x(12);
  for (int k = 0; k < 12; ++k) x[k] = k;
  const TensorValues y = Interpret(*parsed, std::vector<TensorValues>{x})[0];
  for (int k = 0; k < 18; ++k) {
    EXPECT_EQ(y[k], k < 2 || k >= 14 ? 9 : k - 2) << k;
  }
}

}  // namespace
}  // namespace regatta

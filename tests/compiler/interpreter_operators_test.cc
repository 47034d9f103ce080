// What each operator means, written out as loops: nothing else notices an
// expression that computes something other than its name.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/compiler/operator_call.h"

namespace regatta {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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

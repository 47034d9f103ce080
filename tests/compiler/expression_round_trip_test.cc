// Printed text reads back as the same workload, for random expressions.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compiler/expr/parser.h"
#include "compiler/expr/printer.h"
#include "compiler/interp/interpreter.h"
#include "compiler/module/half.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

bool Same(const Expr& a, const Expr& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.constant != b.constant ||
      a.tensor != b.tensor || a.subscripts != b.subscripts ||
      a.carries != b.carries || a.pad_value != b.pad_value ||
      a.operands.size() != b.operands.size()) {
    return false;
  }
  if (a.kind == Expr::Kind::kUnary && a.unary != b.unary) return false;
  if (a.kind == Expr::Kind::kBinary && a.binary != b.binary) return false;
  for (size_t i = 0; i < a.operands.size(); ++i) {
    if (!Same(*a.operands[i], *b.operands[i])) return false;
  }
  return true;
}

void ExpectSame(const Workload& a, const Workload& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.canonical, b.canonical);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.family, b.family);
  ASSERT_EQ(a.stages.size(), b.stages.size());
  for (size_t i = 0; i < a.stages.size(); ++i) {
    const Stage& x = a.stages[i];
    const Stage& y = b.stages[i];
    EXPECT_EQ(x.tensor, y.tensor);
    EXPECT_EQ(x.indices, y.indices);
    EXPECT_EQ(x.reduction, y.reduction);
    EXPECT_EQ(x.reduce_indices, y.reduce_indices);
    EXPECT_EQ(x.accumulator, y.accumulator);
    EXPECT_TRUE(Same(*x.value, *y.value)) << a.text;
  }
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].shape, b.tensors[i].shape);
    EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype);
    EXPECT_EQ(a.tensors[i].role, b.tensors[i].role);
  }
}

// Writes random texts of the language that are valid by construction, with
// parentheses and blanks where nobody would put them.
class TextGenerator {
 public:
  explicit TextGenerator(uint64_t seed) : random_(seed) {}

  std::string Workload() {
    const char* const types[] = {"f32", "f16", "bf16"};
    reduces_ = random_.Below(2) == 0;
    std::string text =
        absl::StrCat("T[i,j] = ", reduces_ ? Reduction() : "", Value(4));
    tensors_ = {"P[i,i+2*j]", "Q[j]", "T[i,j]"};
    reduces_ = false;
    absl::StrAppend(&text, Pick({";", " ; "}), "U[j,i] = ", Value(4),
                    " where i=3, j=2, dtype=", types[random_.Below(3)]);
    const auto uses = [&](const char* name) {
      return text.find(name) != std::string::npos;
    };
    if (uses("A[")) {
      absl::StrAppend(&text, ", A=", types[random_.Below(3)], "[9,9]");
    }
    if (uses("N[")) absl::StrAppend(&text, ", N=i8[9]");
    if (uses("(k") || uses("( k")) absl::StrAppend(&text, ", k=4");
    return text;
  }

 private:
  std::string Pick(const std::vector<std::string>& choices) {
    return choices[random_.Below(choices.size())];
  }

  std::string Reduction() {
    return Pick({"sum(k) ", "prod(k)", "max( k )", "min(k) "});
  }

  std::string Index() {
    return reduces_ ? Pick({"i", "j", "k"}) : Pick({"i", "j"});
  }

  std::string Access() {
    if (random_.Below(3) == 0) {
      return absl::StrCat("pad(A[", Index(), "*2-3+", Index(), ",1-", Index(),
                          "], ", Pick({"0", "-1.5", "inf", "-inf", "0.1"}),
                          ")");
    }
    if (random_.Below(6) == 0) {
      const std::string at = Pick({"(i+2*j)", "i", "(9*j+i-0)", "( 3 *i+40)"});
      return absl::StrCat("A[", at, Pick({"/9,", " / 9 , "}), at, "%9]");
    }
    if (random_.Below(3) == 0) return absl::StrCat("f32(N[", Index(), "+1])");
    return random_.Below(2) == 0
               ? absl::StrCat("A[", Index(), ",", Index(), "+", Index(), "]")
               : Pick(tensors_);
  }

  std::string Value(int depth) {
    if (depth == 0 || random_.Below(6) == 0) {
      return Pick({Access(), Access(), Access(), Index(), "2", "0.1", "1e-5",
                   "-3", "16777217"});
    }
    const auto value = [&] { return Value(depth - 1); };
    switch (random_.Below(9)) {
      case 0:
        return absl::StrCat("(", value(), ")");
      case 1:
        return absl::StrCat("-", Pick({"", "-", " "}), "(", value(), ")");
      case 2:
        return absl::StrCat(Pick({"exp", "abs", "tanh", "erf", "floor"}), "(",
                            value(), ")");
      case 3:
        return absl::StrCat(Pick({"max", "min"}), "(", value(), ",", value(),
                            ")");
      case 4:
        return absl::StrCat("select(", value(),
                            Pick({"<", "<=", ">", ">=", "=="}), value(), ", ",
                            value(), ", ", value(), ")");
      case 5:
        return absl::StrCat(Pick({"f32", "bf16", "f16"}), "(", value(), ")");
      default:
        return absl::StrCat(value(), Pick({"+", " - ", "*", " / "}), value());
    }
  }

  Random random_;
  bool reduces_ = false;
  std::vector<std::string> tensors_ = {"P[i,i+2*j]", "Q[j]"};
};

std::vector<TensorValues> RandomInputs(const Workload& workload,
                                       Random& random) {
  std::vector<TensorValues> inputs;
  for (int id : workload.TensorsWithRole(TensorRole::kInput)) {
    TensorValues values(workload.tensors[id].Elements());
    for (double& value : values) {
      value = RoundToDType(random.Unit() * 4 - 2, workload.tensors[id].dtype);
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

TEST(RoundTripTest, RandomExpressionsReadBackAsThemselves) {
  int parsed = 0;
  Random random(11);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string text = TextGenerator(seed).Workload();
    const auto workload = ParseExpression(text);
    if (!workload.ok()) {
      // The generator does not know every rule of types (16777217 is no f16);
      // what it must never do is write bad syntax.
      EXPECT_EQ(StatusText(workload).find("expected"), std::string::npos)
          << text << "\n"
          << StatusText(workload);
      continue;
    }
    ++parsed;
    const auto again = ParseExpression(PrintExpression(*workload));
    ASSERT_STATUS_OK(again);
    ExpectSame(*workload, *again);
    const auto canonical = ParseExpression(workload->canonical);
    ASSERT_STATUS_OK(canonical);
    EXPECT_EQ(canonical->key, workload->key);
    if (seed % 10 != 0) continue;
    const auto inputs = RandomInputs(*workload, random);
    const auto values = Interpret(*workload, inputs);
    const auto values_again = Interpret(*canonical, inputs);
    ASSERT_EQ(values.size(), values_again.size());
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t e = 0; e < values[i].size(); ++e) {
        const double a = values[i][e];
        const double b = values_again[i][e];
        EXPECT_TRUE(a == b || (a != a && b != b)) << workload->text;
      }
    }
  }
  EXPECT_GT(parsed, 1800);
}

TEST(RoundTripTest, BlanksAndOrderOfBindingsDoNotMatter) {
  const auto a = ParseExpression("C[i]=sum(k)A[i,k]*2 where i=3,k=4");
  const auto b = ParseExpression(
      "  C [ i ]\n=\tsum ( k ) A [ i , k ] * 2.0 where\n k = 4 , dtype = f32 "
      ", i = 3 ");
  ASSERT_STATUS_OK(a);
  ASSERT_STATUS_OK(b);
  EXPECT_EQ(a->canonical.size(), b->canonical.size());
  EXPECT_EQ(a->text, b->text);
  EXPECT_EQ(a->key, b->key);
}

TEST(RoundTripTest, GroupingIsKeptWhereItMatters) {
  for (const std::string value :
       {"A[i] - (A[i] - 2)", "A[i] + (A[i] + 2)", "A[i] / (A[i] / 2)",
        "(A[i] + 1) * 2", "-(A[i] + 1)", "--A[i]", "A[i] - -1",
        "max(A[i] + 1, -inf)", "exp(-A[i])", "A[i] * -0.1"}) {
    const auto workload =
        ParseExpression(absl::StrCat("C[i] = ", value, " where i=3"));
    ASSERT_STATUS_OK(workload);
    EXPECT_EQ(workload->text,
              absl::StrCat("C[i] = ", value, " where i=3, A=f32[3], C=f32[3]"));
  }
}

TEST(RoundTripTest, MaxIsAReductionOrAFunctionAsItReads) {
  const auto reduction = ParseExpression("C[i] = max(j) A[i,j] where i=2,j=2");
  const auto function = ParseExpression("C[i,j] = max(i,j) - 1 where i=2,j=2");
  const auto both =
      ParseExpression("C[n] = max(i,j) (A[i,j] - n) where n=2,i=2,j=2");
  ASSERT_STATUS_OK(reduction);
  ASSERT_STATUS_OK(function);
  ASSERT_STATUS_OK(both);
  EXPECT_EQ(reduction->stages[0].reduction, Reduction::kMax);
  EXPECT_EQ(function->stages[0].reduction, Reduction::kNone);
  EXPECT_EQ(both->stages[0].reduction, Reduction::kMax);
  EXPECT_EQ(both->stages[0].reduce_indices.size(), 2u);
}

}  // namespace
}  // namespace regatta

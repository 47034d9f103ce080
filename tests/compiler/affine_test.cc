#include "compiler/expr/affine.h"

#include <array>
#include <string>

#include "base/random.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

constexpr int kVars = 4;
constexpr std::array<int64_t, kVars> kExtents = {1, 2, 3, 5};

int64_t Extent(int var) { return kExtents[var]; }
std::string Letter(int var) {
  return std::string(1, static_cast<char>('a' + var));
}

int64_t Small(Random& random) {
  return static_cast<int64_t>(random.Below(11)) - 5;
}

Affine RandomForm(Random& random) {
  Affine form(Small(random));
  for (int var = 0; var < kVars; ++var) {
    if (random.Below(2) == 0) form = form + Affine::Var(var, Small(random));
  }
  return form;
}

// Calls `visit` with every point of the box that kExtents spans.
template <typename Visit>
void ForEachPoint(Visit visit) {
  std::array<int64_t, kVars> point;
  for (point[0] = 0; point[0] < kExtents[0]; ++point[0])
    for (point[1] = 0; point[1] < kExtents[1]; ++point[1])
      for (point[2] = 0; point[2] < kExtents[2]; ++point[2])
        for (point[3] = 0; point[3] < kExtents[3]; ++point[3])
          visit([&](int var) { return point[var]; });
}

TEST(AffineTest, ArithmeticAgreesWithEvaluationAtEveryPoint) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const Affine a = RandomForm(random);
    const Affine b = RandomForm(random);
    const int64_t factor = Small(random);
    ForEachPoint([&](auto at) {
      const int64_t x = a.Evaluate(at);
      const int64_t y = b.Evaluate(at);
      EXPECT_EQ((a + b).Evaluate(at), x + y);
      EXPECT_EQ((a - b).Evaluate(at), x - y);
      EXPECT_EQ((a * factor).Evaluate(at), x * factor);
      EXPECT_EQ((a + int64_t{7}).Evaluate(at), x + 7);
    });
  }
}

TEST(AffineTest, EqualFormsCompareEqualHoweverTheyWereBuilt) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const Affine a = RandomForm(random);
    const Affine b = RandomForm(random);
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ(a + b - b, a);
    EXPECT_EQ(a - a, Affine());
    EXPECT_EQ(a * 2, a + a);
    EXPECT_TRUE((a - a).IsConstant());
  }
}

TEST(AffineTest, MinAndMaxAreTheExtremesOverTheBox) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const Affine form = RandomForm(random);
    int64_t least = INT64_MAX;
    int64_t greatest = INT64_MIN;
    ForEachPoint([&](auto at) {
      least = std::min(least, form.Evaluate(at));
      greatest = std::max(greatest, form.Evaluate(at));
    });
    EXPECT_EQ(form.Min(Extent), least);
    EXPECT_EQ(form.Max(Extent), greatest);
  }
}

TEST(AffineTest, SubstitutingAgreesWithEvaluatingTheReplacement) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    const Affine form = RandomForm(random);
    const Affine value = RandomForm(random);
    const int var = static_cast<int>(random.Below(kVars));
    ForEachPoint([&](auto at) {
      const int64_t replaced = form.Evaluate(
          [&](int v) { return v == var ? value.Evaluate(at) : at(v); });
      EXPECT_EQ(form.Substitute(var, value).Evaluate(at), replaced);
    });
  }
}

TEST(AffineTest, PrintsAsPeopleWriteIt) {
  const Affine form = Affine::Var(0, 2) + Affine::Var(1) - Affine(1);
  EXPECT_EQ(form.ToString(Letter), "2*a+b-1");
  EXPECT_EQ(Affine().ToString(Letter), "0");
  EXPECT_EQ(Affine(-3).ToString(Letter), "-3");
  EXPECT_EQ((Affine::Var(1, -1) + Affine(3)).ToString(Letter), "-b+3");
  EXPECT_EQ((Affine::Var(0) - Affine::Var(1, 4)).ToString(Letter), "a-4*b");
}

TEST(AffineTest, CoefficientOfAnAbsentVariableIsZero) {
  const Affine form = Affine::Var(1, 3);
  EXPECT_EQ(form.Coeff(1), 3);
  EXPECT_EQ(form.Coeff(0), 0);
  EXPECT_EQ(form.Coeff(2), 0);
  EXPECT_TRUE(Affine::Var(1, 0).terms().empty());
}

TEST(AffineDeathTest, OverflowIsABugNotAWrongNumber) {
  const Affine huge(INT64_MAX);
  EXPECT_DEATH(huge + int64_t{1}, "check failed");
  EXPECT_DEATH(huge * 2, "check failed");
}

}  // namespace
}  // namespace regatta

#include "base/robust_stats.h"

#include <cmath>

#include "gtest/gtest.h"

namespace regatta {
namespace {

std::vector<double> Range(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(RobustStatsTest, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 6}), 5.5);
}

TEST(RobustStatsTest, DeviationIgnoresOneWildSample) {
  // Median 3; distances 2 1 0 1 997.
  EXPECT_EQ(MedianAbsoluteDeviation({1, 2, 3, 4, 1000}), 1);
}

TEST(RobustStatsTest, QuantileIsLinearBetweenNeighbours) {
  EXPECT_EQ(Quantile({40, 10, 30, 20}, 0), 10);
  EXPECT_EQ(Quantile({40, 10, 30, 20}, 1), 40);
  EXPECT_DOUBLE_EQ(Quantile({40, 10, 30, 20}, 0.1), 13);
}

// Ranks from tables of the sign test (two-sided 5 %).
TEST(RobustStatsTest, MedianIntervalTakesTheTabulatedRanks) {
  struct Row {
    int n, low, high;
  };
  for (const Row& row :
       {Row{1, 1, 1}, Row{5, 1, 5}, Row{6, 1, 6}, Row{8, 1, 8}, Row{9, 2, 8},
        Row{10, 2, 9}, Row{15, 4, 12}, Row{20, 6, 15}, Row{100, 40, 61}}) {
    const Interval interval = MedianInterval95(Range(row.n));
    EXPECT_EQ(interval.low, row.low) << row.n;
    EXPECT_EQ(interval.high, row.high) << row.n;
  }
}

TEST(RobustStatsTest, MedianIntervalOfThousandsDoesNotUnderflow) {
  const Interval interval = MedianInterval95(Range(5000));
  // 2500 - 1.96 * sqrt(5000) / 2 = 2430.7
  EXPECT_NEAR(interval.low, 2431, 2);
  EXPECT_NEAR(interval.high, 5001 - 2431, 2);
}

TEST(RobustStatsTest, PairedRatioOfExactlyTwiceIsTwo) {
  const Ratio ratio = PairedRatio({2, 4, 6, 8, 10, 12}, {1, 2, 3, 4, 5, 6});
  EXPECT_DOUBLE_EQ(ratio.ratio, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
}

TEST(RobustStatsTest, ADisturbedRoundCancels) {
  // Round 3 was ten times slower for both.
  const Ratio ratio =
      PairedRatio({3, 3, 30, 3, 3, 3, 3}, {2, 2, 20, 2, 2, 2, 2});
  EXPECT_DOUBLE_EQ(ratio.ratio, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
}

// Three pairs with log-ratios 0, 1, 5: Walsh averages 0 .5 1 2.5 3 5.
TEST(RobustStatsTest, HodgesLehmannIsTheMedianOfPairwiseMeans) {
  const Ratio ratio = PairedRatio({1, std::exp(1), std::exp(5)}, {1, 1, 1});
  EXPECT_NEAR(ratio.ratio, std::exp(1.75), 1e-12);
  EXPECT_NEAR(ratio.low, 1, 1e-12);
  EXPECT_NEAR(ratio.high, std::exp(5), 1e-9);
}

// Ten pairs: the table of the signed-rank test gives 8 for two-sided 5 %, so
// the interval runs from the 9th smallest Walsh average to the 9th largest.
TEST(RobustStatsTest, IntervalOfTenPairsFollowsTheSignedRankTable) {
  std::vector<double> a, b(10, 1.0);
  for (int i = 0; i < 10; ++i) a.push_back(std::exp(i * i));
  std::vector<double> walsh;
  for (int i = 0; i < 10; ++i) {
    for (int j = i; j < 10; ++j) walsh.push_back((i * i + j * j) / 2.0);
  }
  std::sort(walsh.begin(), walsh.end());
  const Ratio ratio = PairedRatio(a, b);
  EXPECT_NEAR(std::log(ratio.low), walsh[8], 1e-9);
  EXPECT_NEAR(std::log(ratio.high), walsh[55 - 9], 1e-9);
}

TEST(RobustStatsTest, ManyEqualPairsGiveATightIntervalAroundOne) {
  std::vector<double> a, b;
  for (int i = 0; i < 80; ++i) {
    a.push_back(100 + (i * 37 % 11));
    b.push_back(100 + (i * 53 % 11));
  }
  const Ratio ratio = PairedRatio(a, b);
  EXPECT_LT(ratio.low, 1);
  EXPECT_GT(ratio.high, 1);
  EXPECT_LT(ratio.high - ratio.low, 0.05);
}

}  // namespace
}  // namespace regatta

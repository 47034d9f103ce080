#include "device_agent/probe/cache_levels.h"

#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;

struct Level {
  int64_t bytes;
  double ns;
};

// What an ideal cache hierarchy would show: of a set larger than a level, the
// level serves its share; a chain through the set misses the rest.
std::vector<LatencyPoint> Curve(const std::vector<Level>& levels,
                                double memory_ns,
                                int64_t max_bytes = int64_t{128} << 20) {
  std::vector<LatencyPoint> curve;
  for (const int64_t bytes : CacheProbeSizes(4096, max_bytes)) {
    double served = 0, ns = 0;
    for (const Level& level : levels) {
      const double share = std::min(1.0, static_cast<double>(level.bytes) /
                                             static_cast<double>(bytes)) -
                           served;
      if (share <= 0) continue;
      ns += share * level.ns;
      served += share;
    }
    curve.push_back({bytes, ns + (1 - served) * memory_ns});
  }
  return curve;
}

constexpr int64_t kKiB = 1024, kMiB = 1024 * 1024;

void ExpectNear(int64_t got, int64_t want, double tolerance) {
  EXPECT_GE(got, static_cast<int64_t>(want / tolerance)) << "of " << want;
  EXPECT_LE(got, static_cast<int64_t>(want * tolerance)) << "of " << want;
}

TEST(CacheLevelsTest, ProbesSizesThatCachesHave) {
  EXPECT_THAT(
      CacheProbeSizes(4096, 16384),
      ElementsAre(4096, 5120, 6144, 7168, 8192, 10240, 12288, 14336, 16384));
}

TEST(CacheLevelsTest, FindsThreeLevelsOfAServerCore) {
  const CacheSizes sizes =
      FindCaches(Curve({{32 * kKiB, 1}, {kMiB, 4}, {32 * kMiB, 13}}, 95));
  ExpectNear(sizes.l1_bytes, 32 * kKiB, 1.3);
  ExpectNear(sizes.l2_bytes, kMiB, 1.3);
  ExpectNear(sizes.l3_bytes, 32 * kMiB, 1.6);
}

TEST(CacheLevelsTest, FindsOddSizes) {
  const CacheSizes sizes = FindCaches(
      Curve({{48 * kKiB, 1.2}, {1280 * kKiB, 4.5}, {24 * kMiB, 20}}, 110));
  ExpectNear(sizes.l1_bytes, 48 * kKiB, 1.3);
  ExpectNear(sizes.l2_bytes, 1280 * kKiB, 1.3);
  ExpectNear(sizes.l3_bytes, 24 * kMiB, 1.6);
}

TEST(CacheLevelsTest, ABoardWithoutAThirdLevelHasNone) {
  const CacheSizes sizes =
      FindCaches(Curve({{32 * kKiB, 2}, {512 * kKiB, 9}}, 150));
  ExpectNear(sizes.l1_bytes, 32 * kKiB, 1.3);
  ExpectNear(sizes.l2_bytes, 512 * kKiB, 1.5);
  EXPECT_EQ(sizes.l3_bytes, 0);
}

TEST(CacheLevelsTest, AThirdLevelLargerThanTheProbeIsAtLeastThatLarge) {
  const CacheSizes sizes = FindCaches(
      Curve({{32 * kKiB, 1}, {kMiB, 4}, {768 * kMiB, 14}}, 95, 64 * kMiB));
  EXPECT_EQ(sizes.l3_bytes, 64 * kMiB);
}

TEST(CacheLevelsTest, DisturbancesOfSinglePointsChangeNothing) {
  const std::vector<LatencyPoint> clean =
      Curve({{32 * kKiB, 1}, {kMiB, 4}, {32 * kMiB, 13}}, 95);
  const CacheSizes expected = FindCaches(clean);
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<LatencyPoint> noisy = clean;
    for (size_t i = 0; i + 1 < noisy.size(); i += 2) {
      noisy[i + random.Below(2)].ns *= 1 + 20 * random.Unit();
    }
    const CacheSizes sizes = FindCaches(noisy);
    ExpectNear(sizes.l1_bytes, expected.l1_bytes, 1.7);
    ExpectNear(sizes.l2_bytes, expected.l2_bytes, 1.7);
  }
}

TEST(CacheLevelsTest, SaysNothingWithoutAKnee) {
  const CacheSizes flat = FindCaches(Curve({{kMiB * 1024, 5}}, 100));
  EXPECT_EQ(flat.l1_bytes, 0);
  EXPECT_EQ(FindCaches({}).l1_bytes, 0);
  EXPECT_EQ(FindCaches({{4096, 1}, {8192, 1}}).l2_bytes, 0);
}

TEST(CacheLevelsTest, StopsProbingOnceInMemory) {
  const std::vector<LatencyPoint> whole =
      Curve({{32 * kKiB, 1}, {512 * kKiB, 8}}, 150);
  std::vector<LatencyPoint> sofar;
  for (const LatencyPoint& point : whole) {
    sofar.push_back(point);
    if (ReachedMemory(sofar)) break;
  }
  EXPECT_LT(sofar.back().bytes, 16 * kMiB);
  EXPECT_GT(sofar.back().bytes, 2 * kMiB);
  // A large flat cache is not memory.
  EXPECT_FALSE(ReachedMemory(Curve({{kMiB * 1024, 14}}, 95)));
}

TEST(CacheLevelsTest, BelievesReportedSizesOnlyWhereTheyFit) {
  const CacheSizes sizes =
      Reconcile({28 * kKiB, kMiB, 24 * kMiB}, {32 * kKiB, 0, 508 * kMiB});
  EXPECT_EQ(sizes.l1_bytes, 32 * kKiB);
  EXPECT_EQ(sizes.l2_bytes, kMiB);
  EXPECT_EQ(sizes.l3_bytes, 24 * kMiB);
  // What was not seen is not there, whatever is reported.
  EXPECT_EQ(Reconcile({}, {32 * kKiB, kMiB, kMiB}).l1_bytes, 0);
}

}  // namespace
}  // namespace regatta

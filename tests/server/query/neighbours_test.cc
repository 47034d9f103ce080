#include "server/query/neighbours.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Neighbours, AreOfOneKindAndArchitecture) {
  const Target here = *ParseTarget("cpu,triple=x86_64-linux-gnu,mcpu=znver4");
  EXPECT_TRUE(SameArchitecture(
      "cpu,triple=x86_64-linux-gnu,mcpu=znver5,features=+avx512fp16", here));
  EXPECT_FALSE(SameArchitecture("cpu,triple=aarch64-linux-gnu", here));
  EXPECT_FALSE(SameArchitecture("gibberish", here));
  EXPECT_FALSE(SameArchitecture("", here));
}

TEST(Neighbours, NameTheFieldInWhichTheyDifferFirst) {
  const BestKey asked{"w", "zen4-2c", 1, v1::CACHE_STATE_WARM};
  BestKey row = asked;
  row.imported = true;
  EXPECT_EQ(KeyDifference(row, asked), "provenance");
  EXPECT_EQ(KeyDistance(row, asked), 1);
  row.cache = v1::CACHE_STATE_COLD;
  EXPECT_EQ(KeyDifference(row, asked), "cache");
  row.threads = 2;
  EXPECT_EQ(KeyDifference(row, asked), "threads");
  row.device_class = "zen5-8c";
  EXPECT_EQ(KeyDifference(row, asked), "device_class");
  EXPECT_EQ(KeyDistance(row, asked), 4);
}

TEST(Neighbours, SayWhoMeasured) {
  BestKnown row;
  row.key = {"w", "zen5-8c", 1, v1::CACHE_STATE_WARM};
  row.record.result.set_provenance("import:lab-b");
  EXPECT_THAT(NeighbourReason(row), Not(HasSubstr("another log")));
  row.key.imported = true;
  EXPECT_EQ(NeighbourReason(row),
            "measured on zen5-8c with 1 thread(s), caches warm, by another log "
            "(import:lab-b), not by a board of this one; its time here is "
            "unknown");
}

}  // namespace
}  // namespace regatta

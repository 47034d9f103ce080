// The room that a spool's file takes: its limits, rewriting, a disk without
// any.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/spool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/spool_on_disk.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SpoolRoomTest, AFullFileGrowsByNoAcknowledgement) {
  FakeDisk disk;
  SpoolLimits limits;
  limits.max_bytes = 20'000;
  limits.slack_bytes = 1000;
  auto spool = OpenOrDie(&disk, limits);
  int full_at = 0;  // the first that the file has no room for
  while (spool->Append(MakeResult(absl::StrCat("t", full_at))).ok()) ++full_at;
  ASSERT_GT(full_at, 100);
  spool->Forget(absl::StrCat("t", full_at), 1);
  ASSERT_TRUE(spool->Sync().ok());
  for (int i = 0; i < full_at / 3; ++i) {
    spool->Forget(absl::StrCat("t", i), 1);
    ASSERT_LE(disk.content.size(), 20'000u) << i;
  }
  EXPECT_EQ(spool->count(), full_at - full_at / 3);
  // After a crash what was not noted comes again; nothing is missing.
  EXPECT_GE(OpenOrDie(&disk, limits)->count(), spool->count());
  for (int i = full_at / 3; i < full_at - 1; ++i) {
    spool->Forget(absl::StrCat("t", i), 1);
    ASSERT_LE(disk.content.size(), 20'000u) << i;
  }
  EXPECT_THAT(Trials(*spool), ElementsAre(absl::StrCat("t", full_at - 1)));
  // Rewritten meanwhile, it has room again to note all of them.
  EXPECT_THAT(Trials(*OpenOrDie(&disk, limits)),
              ElementsAre(absl::StrCat("t", full_at - 1)));
}

TEST(SpoolRoomTest, TheFileShrinksOnceMostOfItIsForgotten) {
  FakeDisk disk;
  SpoolLimits limits;
  limits.slack_bytes = 4096;
  auto spool = OpenOrDie(&disk, limits);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i), 1, 500)).ok());
  }
  ASSERT_TRUE(spool->Sync().ok());
  const size_t full = disk.content.size();
  for (int i = 0; i < 97; ++i) spool->Forget(absl::StrCat("t", i), 1);
  EXPECT_LT(disk.content.size(), full / 5);
  EXPECT_THAT(Trials(*spool), ElementsAre("t97", "t98", "t99"));
  EXPECT_THAT(Trials(*OpenOrDie(&disk, limits)),
              ElementsAre("t97", "t98", "t99"));
}

TEST(SpoolRoomTest, CompactionKeepsResultsThatWaitForTheirSync) {
  FakeDisk disk;
  SpoolLimits limits;
  limits.slack_bytes = 500;
  auto spool = OpenOrDie(&disk, limits);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i), 1, 100)).ok());
  }
  ASSERT_TRUE(spool->Sync().ok());
  ASSERT_TRUE(spool->Append(MakeResult("waiting")).ok());
  const size_t full = disk.content.size();
  for (int i = 0; i < 19; ++i) spool->Forget(absl::StrCat("t", i), 1);
  ASSERT_LT(disk.content.size(), full / 2);
  EXPECT_FALSE(spool->durable());
  ASSERT_TRUE(spool->Sync().ok());
  EXPECT_THAT(Trials(*spool), ElementsAre("t19", "waiting"));
  EXPECT_EQ(spool->unreadable(), 0);
  disk.LosePower(0);
  EXPECT_THAT(Trials(*OpenOrDie(&disk, limits)), ElementsAre("t19", "waiting"));
}

TEST(SpoolRoomTest, ASpoolThatCannotBeRewrittenGivesItsRoomBackAllTheSame) {
  FakeDisk disk;
  SpoolLimits limits;
  limits.slack_bytes = 1000;
  auto spool = OpenOrDie(&disk, limits);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i), 1, 400)).ok());
  }
  ASSERT_TRUE(spool->Sync().ok());
  // As on a full disk: no room for a second file, nor for forgetting.
  disk.rewrites_fail = true;
  disk.capacity = static_cast<int64_t>(disk.content.size());
  const size_t before = disk.content.size();
  int operations = 0;
  for (int i = 0; i < 39; ++i) {
    const int64_t already = disk.operations;
    spool->Forget(absl::StrCat("t", i), 1);
    operations += static_cast<int>(disk.operations - already);
  }
  EXPECT_EQ(disk.content.size(), before);
  // Each refused record is cut off again; a rewrite is tried only when half as
  // much is to be kept as the last time: 19, 9, 4, 2 and 1 of 40.
  EXPECT_EQ(operations, 2 * 39 + 5);
  spool->Forget("t39", 1);
  EXPECT_EQ(disk.content.size(), 8u) << "more than the header is left";
  ASSERT_TRUE(spool->Append(MakeResult("next")).ok());
  ASSERT_TRUE(spool->Sync().ok());
  auto reopened = OpenOrDie(&disk);
  EXPECT_THAT(Trials(*reopened), ElementsAre("next"));
}

TEST(SpoolRoomTest, OnceTheDiskHasRoomASpoolIsRewrittenAgain) {
  FakeDisk disk;
  SpoolLimits limits;
  limits.slack_bytes = 1000;
  auto spool = OpenOrDie(&disk, limits);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i), 1, 400)).ok());
  }
  ASSERT_TRUE(spool->Sync().ok());
  disk.rewrites_fail = true;
  for (int i = 0; i < 30; ++i) spool->Forget(absl::StrCat("t", i), 1);
  const size_t before = disk.content.size();
  disk.rewrites_fail = false;
  ASSERT_TRUE(spool->Probe().ok());
  spool->Forget("t30", 1);
  EXPECT_LT(disk.content.size(), before / 2);
  EXPECT_EQ(spool->count(), 9);
}

TEST(SpoolRoomTest, AProbeGivesBackTheSpoolsOwnRoomFirst) {
  FakeDisk disk;
  auto spool = OpenOrDie(&disk);  // 1 MiB are not worth rewriting for
  ASSERT_TRUE(spool->Append(MakeResult("t", 1, 500'000)).ok());
  ASSERT_TRUE(spool->Sync().ok());
  disk.capacity = static_cast<int64_t>(disk.content.size());
  spool->Forget("t", 1);
  EXPECT_TRUE(spool->Probe().ok());
}

TEST(SpoolRoomTest, FullnessFollowsTheTighterLimitAndTheCapHolds) {
  FakeDisk disk;
  SpoolLimits limits;
  limits.max_results = 10;
  auto spool = OpenOrDie(&disk, limits);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i))).ok());
  }
  EXPECT_DOUBLE_EQ(spool->Fullness(), 1.0);
  const size_t size = disk.content.size();
  EXPECT_EQ(spool->Append(MakeResult("over")).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(disk.content.size(), size);
  EXPECT_EQ(Trials(*spool).back(), "over");
}

}  // namespace
}  // namespace regatta

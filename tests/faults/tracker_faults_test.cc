// Trackers and servers that are killed or stand still, disks that are full.
#include "absl/strings/str_cat.h"
#include "tests/faults/lab_checks.h"
#include "tests/support/scale.h"
#include "tests/tracker/silence.h"

namespace regatta::faults {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using TrackerFaults = LabTest;

// 37: 1,000 points at REGATTA_TEST_SCALE=20.
TEST(TrackerKills, AtRandomMomentsLoseAndDoubleNothing) {
  Silence silence;
  const int seeds = Scaled(10);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(static_cast<uint64_t>(seed));
    Lab lab(Lab::Approving(), static_cast<uint64_t>(seed));
    lab.trial_time = absl::Milliseconds(700);
    for (const char* id : {"a", "b", "c"}) lab.AddBoard(id, /*credit=*/2);
    lab.Submit(60, /*trials_each=*/3);
    for (int kill = 0; kill < 5; ++kill) {
      lab.Run(absl::Milliseconds(50 * (1 + random.Below(200))));
      lab.KillTracker();
      lab.Run(absl::Milliseconds(50 * (1 + random.Below(100))));
      lab.StartTracker();
    }
    ASSERT_TRUE(lab.HealAndDrain(absl::Minutes(5)));
    ASSERT_THAT(lab.Violations(), IsEmpty());
    ASSERT_THAT(lab.server().log, SizeIs(180));
    for (const auto& [id, result] : lab.server().log) {
      ASSERT_EQ(result.attempt(), 1)
          << id << ": a tracker's death is no board's fault";
    }
  }
}

// 38
TEST_F(TrackerFaults, AServerThatDiesBetweenCommitAndAckAnswersDuplicate) {
  Board& a = lab_.AddBoard("a");
  lab_.server().keeps_acks = true;
  lab_.Submit(1);
  ASSERT_TRUE(lab_.RunUntil([&] { return !lab_.server().log.empty(); },
                            absl::Seconds(10)));
  lab_.Run(absl::Seconds(1));
  EXPECT_THAT(a.acks, IsEmpty());
  lab_.server().keeps_acks = false;
  lab_.DetachServer();
  ExpectDrains();
  EXPECT_THAT(lab_.server().log, SizeIs(1));
  EXPECT_EQ(lab_.server().duplicates, 1);
  ASSERT_THAT(a.acks, SizeIs(1));
  EXPECT_EQ(a.acks[0].status(), v1::ACK_STATUS_DUPLICATE);
  EXPECT_THAT(a.runs, SizeIs(1));
}

// 39
TEST_F(TrackerFaults, APauseOf100SecondsBlamesNobody) {
  lab_.trial_time = absl::Seconds(20);
  Board& a = lab_.AddBoard("a", /*credit=*/2);
  Board& b = lab_.AddBoard("b", /*credit=*/2);
  lab_.Submit(4, /*trials_each=*/8);
  AwaitRun(a);
  AwaitRun(b);
  AwaitBeat(a);
  lab_.PauseTracker();
  lab_.Run(absl::Seconds(100));
  lab_.ResumeTracker();
  for (int i = 0; i < 600; ++i) {
    lab_.Run(absl::Milliseconds(100));
    EXPECT_NE(Presence(a), v1::PRESENCE_LOST) << i;
    EXPECT_NE(Presence(b), v1::PRESENCE_LOST) << i;
  }
  ExpectDrains(absl::Minutes(15));
  ASSERT_THAT(lab_.server().log, SizeIs(32));
  for (const auto& [id, result] : lab_.server().log) {
    EXPECT_EQ(result.attempt(), 1) << id;
  }
}

// 41
TEST_F(TrackerFaults, AFullDiskHoldsAcksBackAndStoresEverythingOnceAfterwards) {
  Board& a = lab_.AddBoard("a");
  lab_.Submit(20);
  ASSERT_TRUE(lab_.RunUntil([&] { return lab_.server().log.size() >= 5; },
                            absl::Minutes(1)));
  lab_.server().disk_full = true;
  lab_.Run(absl::Seconds(1));
  const size_t stored = lab_.server().log.size();
  const size_t acked = a.acks.size();
  lab_.Run(absl::Seconds(90));
  EXPECT_EQ(a.acks.size(), acked) << "nothing acknowledged that is not stored";
  EXPECT_EQ(static_cast<size_t>(a.spool->count()), 20 - stored);
  lab_.server().disk_full = false;
  ExpectDrains();
  EXPECT_THAT(lab_.server().log, SizeIs(20));
  EXPECT_THAT(a.runs, SizeIs(20)) << "nothing ran twice";
}

TEST_F(TrackerFaults, WhatAServerHadNoRoomForComesAgainWithoutARestart) {
  lab_.server().most_waiting = 3;
  lab_.server().disk_full = true;
  Board& a = lab_.AddBoard("a");
  lab_.Submit(20);
  ASSERT_TRUE(
      lab_.RunUntil([&] { return a.runs.size() == 20; }, absl::Minutes(3)));
  // Its repeats change nothing: the tracker has them.
  lab_.Run(absl::Seconds(90));
  EXPECT_THAT(lab_.server().waiting, SizeIs(3));
  const int connects = a.connects;
  lab_.server().disk_full = false;
  lab_.Run(absl::Seconds(10));
  EXPECT_THAT(lab_.server().log, SizeIs(20));
  EXPECT_EQ(a.spool->count(), 0) << "all is acknowledged";
  EXPECT_EQ(a.connects, connects);
  ExpectDrains();
  EXPECT_THAT(a.runs, SizeIs(20)) << "nothing ran twice";
}

// 41, the tracker's own disk
TEST_F(TrackerFaults, WithoutRoomForItsNotesATrackerHandsNothingOut) {
  Board& a = lab_.AddBoard("a");
  lab_.Run(absl::Seconds(1));
  lab_.store().error = absl::ResourceExhaustedError("no space left");
  lab_.Submit(2);
  lab_.Run(absl::Seconds(30));
  EXPECT_THAT(a.started, IsEmpty());
  lab_.store().error = absl::OkStatus();
  ExpectDrains();
  EXPECT_THAT(lab_.server().log, SizeIs(2));
}

}  // namespace
}  // namespace regatta::faults

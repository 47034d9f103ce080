// Clocks that jump and boards that sleep.
#include "tests/faults/lab_checks.h"

namespace regatta::faults {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using TimeFaults = LabTest;

// 53
TEST_F(TimeFaults, JumpsOfTheWallClockMoveNoLeaseAndNoOrder) {
  lab_.trial_time = absl::Seconds(20);
  Board& a = lab_.AddBoard("a", /*credit=*/2);
  Board& b = lab_.AddBoard("b", /*credit=*/2);
  lab_.Submit(6, /*trials_each=*/3);
  AwaitRun(a);
  const absl::Time begin = lab_.clock().Wall();
  for (const absl::Duration jump :
       {absl::Hours(1), -absl::Hours(2), absl::Hours(1)}) {
    lab_.clock().SetWall(lab_.clock().Wall() + jump);
    for (int s = 0; s < 45; ++s) {
      lab_.Run(absl::Seconds(1));
      EXPECT_EQ(Presence(a), v1::PRESENCE_ONLINE);
      EXPECT_EQ(Presence(b), v1::PRESENCE_ONLINE);
    }
  }
  // A tracker that starts with a clock of long ago.
  lab_.clock().SetWall(absl::UnixEpoch());
  lab_.KillTracker();
  lab_.StartTracker();
  lab_.Run(absl::Seconds(5));
  lab_.clock().SetWall(begin + absl::Minutes(3));
  ExpectDrains(absl::Minutes(5));
  ASSERT_THAT(lab_.server().log, SizeIs(18));
  EXPECT_EQ(a.started.size() + b.started.size(), 6u);
  for (const auto& [id, result] : lab_.server().log) {
    EXPECT_EQ(result.attempt(), 1) << id;
  }
  EXPECT_EQ(lab_.server().duplicates, 0);
}

// 55
TEST_F(TimeFaults, ABoardThatSleptTenMinutesStartsNothingBeforeItReports) {
  lab_.trial_time = absl::Seconds(5);
  Board& a = lab_.AddBoard("a", /*credit=*/2);
  lab_.Submit(2, /*trials_each=*/6);
  AwaitRun(a, 2);
  lab_.Run(absl::Seconds(1));
  Board& b = lab_.AddBoard("b", /*credit=*/2);
  const size_t runs = a.runs.size();
  const int64_t old = a.started.back().lease_epoch();
  lab_.Suspend(a, absl::Minutes(10));
  EXPECT_EQ(Presence(a), v1::PRESENCE_LOST);
  EXPECT_THAT(b.started, SizeIs(2));
  EXPECT_EQ(a.runs.size(), runs);
  lab_.Submit(4);
  ExpectDrains(absl::Minutes(5));
  for (size_t i = runs; i < a.runs.size(); ++i) {
    EXPECT_GT(a.runs[i].lease_epoch, old) << "of an expired lease";
  }
  EXPECT_THAT(lab_.server().log, SizeIs(16));
}

}  // namespace
}  // namespace regatta::faults

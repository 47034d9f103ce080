// Links that stand still, in one direction or both, and messages that come
// twice or late. The numbers are those of docs/faults.md.
#include "absl/strings/str_cat.h"
#include "tests/faults/lab_checks.h"
#include "tests/support/scale.h"
#include "tests/tracker/silence.h"

namespace regatta::faults {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// An agent starts no trial past 80 % of its lease of 60 s.
constexpr absl::Duration kStartsUntil = absl::Seconds(48);

class NetworkFaults : public LabTest {
 protected:
  // Board a holds two assignments of 16 trials of 20 s, board b is idle, and a
  // has just been heard of and answered, at cut_.
  void Hold() {
    lab_.trial_time = absl::Seconds(20);
    a_ = &lab_.AddBoard("a", /*credit=*/2);
    lab_.Submit(2, /*trials_each=*/16);
    AwaitRun(*a_);
    lab_.Run(absl::Seconds(1));
    b_ = &lab_.AddBoard("b", /*credit=*/2);
    AwaitBeat(*a_);
    cut_ = lab_.clock().Steady();
  }
  // Runs until so long after the cut.
  void RunTo(absl::Duration d) { lab_.Run(d - lab_.Since(cut_)); }
  void ExpectNothingStartedLate(SteadyTime healed) const {
    for (const TrialRun& run : a_->runs) {
      if (run.start < cut_ || run.start > healed) continue;
      EXPECT_LE(run.start - cut_, kStartsUntil + absl::Milliseconds(100))
          << run.trial_id;
    }
  }
  // b has a's work, as attempt 2, so long after the cut.
  void ExpectReassigned(absl::Duration not_before, absl::Duration by) {
    RunTo(not_before);
    EXPECT_EQ(b_->started.size(), 0u);
    RunTo(by);
    ASSERT_EQ(b_->started.size(), 2u);
    for (const v1::Assignment& again : b_->started) {
      EXPECT_EQ(again.attempt(), 2);
    }
  }
  void ExpectLostAfterSixtySeconds() {
    ExpectReassigned(absl::Seconds(59.5), absl::Seconds(61));
    EXPECT_EQ(Presence(*a_), v1::PRESENCE_LOST);
  }

  Board* a_ = nullptr;
  Board* b_ = nullptr;
  SteadyTime cut_;
};

// 23
TEST_F(NetworkFaults, ABlackHoleOfTwentySecondsChangesNothing) {
  Hold();
  a_->link.BlockBoth(true);
  for (int s = 1; s <= 20; ++s) {
    RunTo(absl::Seconds(s));
    EXPECT_EQ(Presence(*a_), v1::PRESENCE_ONLINE) << s;
  }
  a_->link.BlockBoth(false);
  lab_.Run(absl::Seconds(1));
  EXPECT_THAT(a_->agent_closed, IsEmpty()) << "the stream survived";
  // A longer one: suspect at 30 s, another stream, the same leases.
  AwaitBeat(*a_);
  cut_ = lab_.clock().Steady();
  a_->link.BlockBoth(true);
  RunTo(absl::Seconds(29.5));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_ONLINE);
  RunTo(absl::Seconds(30.5));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_SUSPECT);
  RunTo(absl::Seconds(42));
  a_->link.BlockBoth(false);
  RunTo(absl::Seconds(47));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_ONLINE);
  ExpectDrains(absl::Minutes(15));
  EXPECT_EQ(b_->started.size(), 0u);
  EXPECT_EQ(a_->started.size(), 2u);
  EXPECT_THAT(lab_.server().log, SizeIs(32));
}

// 24, and what presence says of silence
TEST_F(NetworkFaults, ABlackHoleOfTwoMinutesIsNoticedByBothAndLosesNothing) {
  Hold();
  a_->link.BlockBoth(true);
  RunTo(absl::Seconds(29.5));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_ONLINE);
  RunTo(absl::Seconds(30.5));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_SUSPECT);
  RunTo(absl::Seconds(59.5));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_SUSPECT);
  ASSERT_FALSE(a_->agent_closed.empty());
  EXPECT_THAT(a_->agent_closed[0], HasSubstr("silent"));
  ExpectLostAfterSixtySeconds();
  RunTo(absl::Minutes(2));
  ExpectNothingStartedLate(lab_.clock().Steady());
  // What ran when the way was cut, and what started until then.
  EXPECT_GE(a_->spool->count(), 2);
  EXPECT_LE(a_->spool->count(), 4);
  ExpectDrains(absl::Minutes(15));
  EXPECT_THAT(lab_.server().log, SizeIs(32));
}

// 25
TEST_F(NetworkFaults, WhenOnlyTheTrackerHearsNothingItsLeaseEndsToo) {
  Hold();
  a_->link.to_tracker_blocked = true;
  ExpectLostAfterSixtySeconds();
  ASSERT_FALSE(a_->agent_closed.empty()) << "it sees that nothing is answered";
  RunTo(absl::Seconds(90));
  ExpectNothingStartedLate(lab_.clock().Steady());
  ExpectDrains(absl::Minutes(15));
  EXPECT_THAT(lab_.server().log, SizeIs(32));
}

// 26
TEST_F(NetworkFaults, WhenOnlyTheAgentHearsNothingItStopsAndComesBackAnew) {
  Hold();
  a_->link.to_agent_blocked = true;
  RunTo(absl::Seconds(34));
  EXPECT_FALSE(a_->agent_closed.empty());
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_SUSPECT) << "it hung up";
  // Its heartbeats came through until then, so the leases end that much later.
  ExpectReassigned(absl::Seconds(80), absl::Seconds(94));
  ExpectNothingStartedLate(lab_.clock().Steady());
  a_->link.to_agent_blocked = false;
  // No later than a reconnect may take by then.
  lab_.Run(absl::Seconds(31));
  EXPECT_EQ(Presence(*a_), v1::PRESENCE_ONLINE);
  ExpectDrains(absl::Minutes(15));
  EXPECT_THAT(lab_.server().log, SizeIs(32));
}

// 28: what is lost is sent again by TCP, a second late.
TEST_F(NetworkFaults, TenMinutesOfLatencyLoseNothing) {
  Random random(3);
  lab_.trial_time = absl::Seconds(5);
  a_ = &lab_.AddBoard("a", /*credit=*/2);
  lab_.Submit(60, /*trials_each=*/2);
  lab_.Run(absl::Seconds(1));
  for (int s = 0; s < 2400; ++s) {
    a_->link.latency = absl::Milliseconds(100 + random.Below(401));
    if (random.Below(20) == 0) a_->link.latency += absl::Seconds(1);
    lab_.Run(absl::Milliseconds(250));
    ASSERT_EQ(Presence(*a_), v1::PRESENCE_ONLINE) << s;
  }
  EXPECT_EQ(a_->connects, 1);
  EXPECT_GT(Finished(*a_), 100);
  ExpectDrains();
  EXPECT_EQ(a_->started.size(), 60u);
  EXPECT_EQ(lab_.server().duplicates, 0);
}

// 29
TEST(MangledMessages, TwiceOutOfOrderAndReplayedHaveNoDoubleEffect) {
  Silence silence;
  int duplicates = 0;
  for (int seed = 1; seed <= Scaled(20); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Lab lab(Lab::Approving(), static_cast<uint64_t>(seed));
    for (const char* id : {"a", "b", "c"}) {
      Board& board = lab.AddBoard(id, /*credit=*/2);
      board.link.mangle = 0.15;
      board.link.latency = absl::Milliseconds(120);
    }
    lab.Submit(40, /*trials_each=*/2);
    lab.Run(absl::Minutes(2));
    ASSERT_TRUE(lab.HealAndDrain(absl::Minutes(10)));
    ASSERT_THAT(lab.Violations(), IsEmpty());
    ASSERT_THAT(lab.server().log, SizeIs(80));
    duplicates += lab.server().duplicates;
  }
  EXPECT_GT(duplicates, 0) << "nothing was mangled";
}

}  // namespace
}  // namespace regatta::faults

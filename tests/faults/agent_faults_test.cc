// An agent that is killed, paused or restarted at the worst moments; its spool
// and its disk. The numbers are those of docs/faults.md.
#include "absl/strings/str_cat.h"
#include "tests/faults/lab_checks.h"

namespace regatta::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using AgentFaults = LabTest;

// 1
TEST_F(AgentFaults, AnIdleOneThatIsKilledIsBackAtOnceAndCostsNothing) {
  Board& a = lab_.AddBoard("a");
  AwaitBeat(a);
  lab_.KillAgent(a);
  lab_.Run(absl::Milliseconds(100));
  EXPECT_EQ(Presence(a), v1::PRESENCE_SUSPECT) << "its connection closed";
  lab_.Run(absl::Seconds(58));
  EXPECT_EQ(Presence(a), v1::PRESENCE_SUSPECT);
  lab_.StartAgent(a);
  lab_.Run(absl::Milliseconds(200));
  EXPECT_EQ(Presence(a), v1::PRESENCE_ONLINE);
  lab_.Submit(1);
  ExpectDrains();
  EXPECT_EQ(Stored("1/0/0").attempt(), 1);
}

// 2
TEST_F(AgentFaults, AKillInMidAssignmentCostsOnlyWhatWasNotFinished) {
  Board& a = lab_.AddBoard("a");
  lab_.server().disk_full = true;  // nothing is acknowledged
  lab_.Submit(1, /*trials_each=*/32);
  ASSERT_TRUE(
      lab_.RunUntil([&] { return Finished(a) == 10; }, absl::Minutes(1)));
  lab_.Run(absl::Milliseconds(100));
  lab_.KillAgent(a);
  Board& b = lab_.AddBoard("b");
  lab_.Run(absl::Seconds(10));
  EXPECT_THAT(b.started, IsEmpty()) << "the first may come back with it";
  lab_.StartAgent(a);
  lab_.Run(absl::Seconds(3));
  lab_.server().disk_full = false;
  ExpectDrains();
  ASSERT_THAT(lab_.server().log, SizeIs(32));
  for (int i = 0; i < 32; ++i) {
    const v1::TrialResult& result = Stored(absl::StrCat("1/0/", i));
    EXPECT_EQ(result.device_id(), i < 10 ? "a" : "b") << i;
    EXPECT_EQ(result.attempt(), i < 10 ? 1 : 2) << i;
  }
  EXPECT_EQ(lab_.server().duplicates, 0);
}

// 3
TEST_F(AgentFaults, AKillBeforeTheAckIsHeardGivesADuplicate) {
  Board& a = lab_.AddBoard("a");
  lab_.Submit(1);
  AwaitRun(a);
  lab_.Run(absl::Milliseconds(200));
  a.link.to_agent_blocked = true;
  ASSERT_TRUE(lab_.RunUntil([&] { return !lab_.server().log.empty(); },
                            absl::Seconds(5)));
  lab_.Run(absl::Seconds(1));
  EXPECT_THAT(a.acks, IsEmpty());
  lab_.KillAgent(a);
  a.link.to_agent_blocked = false;
  lab_.StartAgent(a);
  ExpectDrains();
  EXPECT_THAT(lab_.server().log, SizeIs(1));
  EXPECT_EQ(lab_.server().duplicates, 1);
  ASSERT_THAT(a.acks, SizeIs(1));
  EXPECT_EQ(a.acks[0].status(), v1::ACK_STATUS_DUPLICATE);
  EXPECT_THAT(a.runs, SizeIs(1));
}

// 4
TEST_F(AgentFaults, AKillBetweenSpoolAndSendingLosesNothing) {
  Board& a = lab_.AddBoard("a");
  lab_.Submit(1);
  AwaitRun(a);
  lab_.Run(absl::Milliseconds(200));
  a.link.to_tracker_blocked = true;
  ASSERT_TRUE(
      lab_.RunUntil([&] { return a.spool->count() == 1; }, absl::Seconds(5)));
  lab_.KillAgent(a);
  // What the kernel still had to send is gone as well: the board lost power.
  for (const auto& connection : a.connections) connection->up.Clear();
  a.link.to_tracker_blocked = false;
  lab_.Run(absl::Seconds(5));
  EXPECT_THAT(lab_.server().log, IsEmpty());
  lab_.StartAgent(a);
  ExpectDrains();
  EXPECT_EQ(Stored("1/0/0").attempt(), 1);
  EXPECT_THAT(a.runs, SizeIs(1)) << "it ran once";
}

// 5
TEST(SpoolFaults, ATornLastRecordCostsOnlyItsTrialAnotherRun) {
  int64_t before = 0;
  int64_t record = 1;
  for (int64_t kept = 0; kept < record; ++kept) {
    SCOPED_TRACE(absl::StrCat(kept, " bytes of the last record are left"));
    Lab lab;
    Board& a = lab.AddBoard("a");
    lab.Submit(1, /*trials_each=*/2);
    ASSERT_TRUE(
        lab.RunUntil([&] { return a.running.has_value(); }, absl::Seconds(5)));
    lab.Run(absl::Milliseconds(200));
    a.link.to_tracker_blocked = true;
    ASSERT_TRUE(
        lab.RunUntil([&] { return a.spool->count() == 1; }, absl::Seconds(5)));
    before = static_cast<int64_t>(a.disk.content.size());
    ASSERT_TRUE(
        lab.RunUntil([&] { return a.spool->count() == 2; }, absl::Seconds(5)));
    record = static_cast<int64_t>(a.disk.content.size()) - before;
    lab.KillAgent(a);
    for (const auto& connection : a.connections) connection->up.Clear();
    a.disk.content.resize(static_cast<size_t>(before + kept));
    a.disk.durable = a.disk.content;
    a.link.to_tracker_blocked = false;
    lab.StartAgent(a);
    EXPECT_TRUE(lab.HealAndDrain(absl::Seconds(150)));
    EXPECT_THAT(lab.Violations(), IsEmpty());
    EXPECT_THAT(a.RanTrials(), ElementsAre("1/0/0", "1/0/1", "1/0/1"));
    EXPECT_THAT(lab.server().log, SizeIs(2));
  }
  EXPECT_GT(record, 50);
}

// 6
TEST_F(AgentFaults, APauseOf45SecondsIsForgivenWithTheSameLease) {
  Board& a = lab_.AddBoard("a");
  lab_.trial_time = absl::Seconds(70);
  lab_.Submit(1);
  AwaitRun(a);
  Board& b = lab_.AddBoard("b");
  AwaitBeat(a);
  lab_.PauseAgent(a);
  lab_.Run(absl::Seconds(29));
  EXPECT_EQ(Presence(a), v1::PRESENCE_ONLINE);
  lab_.Run(absl::Seconds(2));
  EXPECT_EQ(Presence(a), v1::PRESENCE_SUSPECT);
  lab_.Run(absl::Seconds(14));
  EXPECT_EQ(Presence(a), v1::PRESENCE_SUSPECT);
  lab_.ResumeAgent(a);
  lab_.Run(absl::Seconds(1));
  EXPECT_EQ(Presence(a), v1::PRESENCE_ONLINE);
  ExpectDrains();
  EXPECT_THAT(a.started, SizeIs(1));
  EXPECT_THAT(b.started, IsEmpty());
  EXPECT_EQ(Stored("1/0/0").attempt(), 1);
  EXPECT_EQ(Stored("1/0/0").lease_epoch(), a.started[0].lease_epoch());
}

// 22: one that is due every 10 s is heard of after 12 s at the latest.
TEST_F(AgentFaults, TwoMinutesOfBusyProcessorsMakeHeartbeatsTwoSecondsLate) {
  Random random(22);
  Board& a = lab_.AddBoard("a");
  lab_.trial_time = absl::Seconds(160);
  lab_.Submit(1);
  AwaitRun(a);
  Board& b = lab_.AddBoard("b");
  AwaitBeat(a);
  int64_t longest_ms = 0;
  int late = 0;
  for (int ms = 0; ms < 120'000; ms += 100) {
    if (ms % 1000 == 0) a.late = absl::Milliseconds(random.Below(2001));
    lab_.Run(absl::Milliseconds(100));
    ASSERT_EQ(Presence(a), v1::PRESENCE_ONLINE) << ms;
    const int64_t silent = lab_.Status("a").last_seen_ms();
    longest_ms = std::max(longest_ms, silent);
    late += silent > 10'500 ? 1 : 0;
  }
  EXPECT_LE(longest_ms, 12'100);
  EXPECT_GT(late, 0) << "no heartbeat was late at all";
  a.late = absl::ZeroDuration();
  ExpectDrains();
  EXPECT_THAT(a.started, SizeIs(1));
  EXPECT_THAT(b.started, IsEmpty());
  EXPECT_EQ(Stored("1/0/0").attempt(), 1);
  EXPECT_EQ(a.connects, 1);
}

// 7
TEST_F(AgentFaults, AfterAPauseOf180SecondsNothingOldStartsAndItsResultCounts) {
  Board& a = lab_.AddBoard("a", /*credit=*/2);
  lab_.trial_time = absl::Seconds(130);
  lab_.Submit(2);
  AwaitRun(a);
  lab_.Run(absl::Seconds(1));
  ASSERT_THAT(a.started, SizeIs(2));
  Board& b = lab_.AddBoard("b", /*credit=*/2);
  AwaitBeat(a);
  const SteadyTime paused = lab_.clock().Steady();
  lab_.PauseAgent(a);
  ASSERT_TRUE(
      lab_.RunUntil([&] { return b.started.size() == 2; }, absl::Seconds(70)));
  EXPECT_EQ(Presence(a), v1::PRESENCE_LOST);
  EXPECT_GE(lab_.Since(paused), absl::Seconds(59.5));
  EXPECT_LE(lab_.Since(paused), absl::Seconds(61));
  for (const v1::Assignment& again : b.started) {
    EXPECT_EQ(again.attempt(), 2);
    EXPECT_GT(again.lease_epoch(), a.started[1].lease_epoch());
  }
  lab_.Run(absl::Seconds(180) - lab_.Since(paused));
  ASSERT_EQ(a.runs.size(), 1u);
  lab_.ResumeAgent(a);
  // The first run's result is late, and the first of its trial all the same.
  ASSERT_TRUE(lab_.RunUntil([&] { return !lab_.server().log.empty(); },
                            absl::Seconds(5)));
  EXPECT_EQ(Stored(a.runs[0].trial_id).device_id(), "a");
  ExpectDrains(absl::Minutes(10));
  EXPECT_THAT(lab_.server().log, SizeIs(2));
  for (size_t i = 1; i < a.runs.size(); ++i) {
    EXPECT_GT(a.runs[i].lease_epoch, b.started[1].lease_epoch())
        << "nothing of the old leases started";
  }
}

// 9, 10, 11, 14, 18: what a candidate does is its result.
TEST_F(AgentFaults, WhatACandidateDoesIsNotTriedAgainAndTheBoardGoesOn) {
  Board& a = lab_.AddBoard("a");
  Board& b = lab_.AddBoard("b");
  const v1::Outcome outcomes[] = {
      v1::OUTCOME_CRASHED, v1::OUTCOME_TIMED_OUT, v1::OUTCOME_OUT_OF_MEMORY,
      v1::OUTCOME_WRONG_RESULT, v1::OUTCOME_SANDBOX_VIOLATION};
  lab_.outcome = [&](const Board&, const v1::TrialSpec& spec) {
    const int ordinal = spec.trial_id().back() - '0';
    return outcomes[ordinal % 5];
  };
  lab_.Submit(10);
  ExpectDrains();
  EXPECT_EQ(a.runs.size() + b.runs.size(), 10u);
  for (const auto& [id, result] : lab_.server().log) {
    EXPECT_EQ(result.attempt(), 1) << id;
    EXPECT_EQ(result.outcome(), outcomes[(id.back() - '0') % 5]) << id;
  }
  for (const Board* board : {&a, &b}) {
    EXPECT_EQ(lab_.Status(board->id).standing().trust(), v1::TRUST_UNKNOWN);
    // The next one starts at once.
    for (size_t i = 1; i < board->runs.size(); ++i) {
      EXPECT_LE(board->runs[i].start - *board->runs[i - 1].end,
                absl::Milliseconds(250));
    }
  }
}

// 42
TEST_F(AgentFaults, AFullDiskKeepsWorkAwayAndLosesNoResult) {
  Board& a = lab_.AddBoard("a");
  lab_.Submit(1, /*trials_each=*/3);
  AwaitRun(a);
  Board& b = lab_.AddBoard("b");
  a.disk.capacity = static_cast<int64_t>(a.disk.content.size());
  // The assignment that it has goes on; its results come from memory.
  ASSERT_TRUE(
      lab_.RunUntil([&] { return Finished(a) == 3; }, absl::Minutes(1)));
  lab_.Run(absl::Seconds(1));
  EXPECT_THAT(lab_.server().log, SizeIs(3));
  EXPECT_THAT(lab_.Status("a").info().health(),
              HasSubstr("draining: the result spool cannot be written"));
  lab_.Submit(4);
  lab_.Run(absl::Seconds(20));
  EXPECT_THAT(a.started, SizeIs(1));
  EXPECT_THAT(b.started, SizeIs(4));
  a.disk.capacity = -1;
  lab_.Run(absl::Seconds(6));
  EXPECT_EQ(lab_.Status("a").info().health(), "ok");
  lab_.Submit(4);
  ExpectDrains();
  EXPECT_GT(a.started.size(), 1u);
  EXPECT_EQ(lab_.server().duplicates, 0);
}

// 56
TEST_F(AgentFaults, ARebootInMidRunCountsAnAttempt) {
  Board& a = lab_.AddBoard("a");
  lab_.trial_time = absl::Seconds(20);
  lab_.Submit(1);
  AwaitRun(a);
  lab_.Run(absl::Seconds(1));
  Board& b = lab_.AddBoard("b");
  lab_.KillAgent(a);
  ++a.boot;
  lab_.Run(absl::Seconds(15));
  lab_.StartAgent(a);
  ASSERT_TRUE(
      lab_.RunUntil([&] { return !b.started.empty(); }, absl::Seconds(2)))
      << "at once, not when the lease ends";
  EXPECT_EQ(b.started[0].attempt(), 2);
  ExpectDrains();
}

}  // namespace
}  // namespace regatta::faults

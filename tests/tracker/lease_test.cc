// Deadlines, losses and attempts.
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaseTest : public CoreTest {
 protected:
  LeaseTest() : server_(Attach()), board_(ConnectBoard("1")) {}

  v1::Assignment Start() {
    Submit(server_, {MakeWork(7, 0)});
    const v1::Assignment assignment = OneAssigned(board_);
    Accept(board_, assignment);
    return assignment;
  }
  // The board's agent is killed and a new process of it says hello.
  v1::Assignment KillAndReturn(const std::string& instance) {
    Disconnect(board_);
    board_ = Connect(MakeHello("a1", {MakeDevice("d1")}, instance));
    return OneAssigned(board_);
  }

  // Heartbeats with an unchanged counter.
  void BeatFor(absl::Duration d, int64_t work_ticks,
               const std::vector<std::string>& held = {}) {
    for (; d > absl::ZeroDuration(); d -= absl::Seconds(10)) {
      Wait(absl::Seconds(10));
      Beat(board_, held, work_ticks);
    }
  }

  StreamId server_;
  SessionId board_;
};

TEST_F(LeaseTest, AnAssignmentNotAcceptedInFiveSecondsIsQueuedAgain) {
  Submit(server_, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(board_);
  Wait(absl::Milliseconds(4500));
  EXPECT_THAT(Cancelled(board_), IsEmpty());
  Wait(absl::Seconds(2));
  EXPECT_THAT(Cancelled(board_), ElementsAre(first.assignment_id()));
  const v1::Assignment second = OneAssigned(board_);
  EXPECT_EQ(second.attempt(), 1);
  EXPECT_NE(second.lease_epoch(), first.lease_epoch());
  // An answer to the first dispatch says nothing about the second.
  Accept(board_, first, /*accepted=*/false);
  EXPECT_EQ(Status("d1").running(), 1);
}

TEST_F(LeaseTest, HeartbeatsRenewTheLease) {
  const v1::Assignment assignment = Start();
  for (int i = 0; i < 20; ++i) {
    Wait(absl::Seconds(10));
    Beat(board_, {assignment.assignment_id()});
    EXPECT_THAT(LastBeatAck(board_).renewed(),
                ElementsAre(assignment.assignment_id()));
  }
  EXPECT_THAT(Assigned(board_), IsEmpty());
  EXPECT_THAT(Cancelled(board_), IsEmpty());
}

TEST_F(LeaseTest, ALeaseThatHeartbeatsNoLongerListRunsOut) {
  const v1::Assignment first = Start();
  for (int i = 0; i < 5; ++i) {
    Wait(absl::Seconds(10));
    Beat(board_);
  }
  EXPECT_THAT(Cancelled(board_), IsEmpty());
  Wait(absl::Seconds(12));
  EXPECT_THAT(Cancelled(board_), ElementsAre(first.assignment_id()));
  EXPECT_EQ(OneAssigned(board_).attempt(), 2);
}

TEST_F(LeaseTest, AHeartbeatWithAForeignAssignmentIsToldToAbandonIt) {
  Beat(board_, {"log1/9/0/0"});
  EXPECT_THAT(LastBeatAck(board_).abandoned(), ElementsAre("log1/9/0/0"));
}

TEST_F(LeaseTest, AClosedConnectionMakesSuspectAtOnceAndLostAfterSixtySeconds) {
  const v1::Assignment first = Start();
  const SessionId other = ConnectBoard("2");
  Disconnect(board_);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
  for (int i = 0; i < 5; ++i) {
    Wait(absl::Seconds(10));
    Beat(other);
  }
  Wait(absl::Seconds(9.5));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
  EXPECT_THAT(Assigned(other), IsEmpty()) << "the agent may come back with it";
  Wait(absl::Seconds(0.5));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_LOST);
  const v1::Assignment second = OneAssigned(other);
  EXPECT_EQ(second.assignment_id(), first.assignment_id());
  EXPECT_EQ(second.attempt(), 2);
}

TEST_F(LeaseTest, SilenceMakesSuspectAndThenLostAndClosesTheSession) {
  Start();
  Wait(absl::Seconds(29.5));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  Wait(absl::Seconds(0.5));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
  Wait(absl::Seconds(29.5));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
  Wait(absl::Seconds(0.5));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_LOST);
  ASSERT_TRUE(agents_[board_].closed.has_value());
  EXPECT_EQ(agents_[board_].closed->code(), absl::StatusCode::kUnavailable);
}

TEST_F(LeaseTest, AnnouncedQuietIsNotSilence) {
  Beat(board_, {}, 0, /*quiet_ms=*/20'000);
  Wait(absl::Seconds(45));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  Wait(absl::Seconds(10));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
}

TEST_F(LeaseTest, NobodyMayAnnounceMoreThanThirtySecondsOfQuiet) {
  Beat(board_, {}, 0, /*quiet_ms=*/3'600'000);
  Wait(absl::Seconds(62));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
}

TEST_F(LeaseTest, ARestartedAgentFreesWhatItNoLongerHoldsAtOnce) {
  const v1::Assignment first = Start();
  const v1::Assignment second = KillAndReturn("i2");
  EXPECT_EQ(second.assignment_id(), first.assignment_id());
  EXPECT_EQ(second.attempt(), 2);
  EXPECT_GT(second.lease_epoch(), first.lease_epoch());
}

TEST_F(LeaseTest, AnAssignThatWasLostOnTheWayIsNoAttempt) {
  Submit(server_, {MakeWork(7, 0)});
  OneAssigned(board_);  // never answered
  EXPECT_EQ(KillAndReturn("i1").attempt(), 1);
}

TEST_F(LeaseTest, AfterThreeAttemptsEachUnfinishedTrialEndsAsAgentLost) {
  Submit(server_, {MakeWork(7, 0, /*trials=*/3)});
  v1::Assignment assignment = OneAssigned(board_);
  Accept(board_, assignment);
  SendResults(board_, {MakeResult(assignment, 0, false)});
  EXPECT_THAT(Results(server_), SizeIs(1));
  assignment = KillAndReturn("i2");
  EXPECT_EQ(assignment.trials_size(), 2) << "one is done";
  Accept(board_, assignment);
  assignment = KillAndReturn("i3");
  EXPECT_EQ(assignment.attempt(), 3);
  Accept(board_, assignment);
  Disconnect(board_);
  board_ = Connect(MakeHello("a1", {MakeDevice("d1")}, "i4"));
  EXPECT_THAT(Assigned(board_), IsEmpty());
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(2));
  for (const auto& result : results) {
    EXPECT_EQ(result.outcome(), v1::OUTCOME_AGENT_LOST);
    EXPECT_THAT(result.detail(), testing::HasSubstr("3 attempts"));
    EXPECT_EQ(result.attempt(), 3);
    EXPECT_EQ(result.device_class(), kClass);
  }
  EXPECT_EQ(results[0].spec().trial_id(), "7/0/1");
  EXPECT_EQ(results[1].spec().trial_id(), "7/0/2");
}

TEST_F(LeaseTest, AnotherAttemptGoesToAnotherBoardOfTheClass) {
  const v1::Assignment first = Start();
  const SessionId other = ConnectBoard("2");
  Submit(server_, {MakeWork(8, 0)});
  const v1::Assignment busy = OneAssigned(other);
  Accept(other, busy);
  Disconnect(board_);
  board_ = Connect(MakeHello("a1", {MakeDevice("d1")}, "i2"));
  EXPECT_THAT(Assigned(board_), IsEmpty()) << "it waits for the other board";
  Finish(other, busy);
  const v1::Assignment second = OneAssigned(other);
  EXPECT_EQ(second.assignment_id(), first.assignment_id());
  EXPECT_EQ(second.attempt(), 2);
}

TEST_F(LeaseTest, AReleaseIsNoAttemptUnlessTheDeviceFailed) {
  v1::Assignment assignment = Start();
  v1::AgentMessage message;
  v1::Release* release = message.mutable_release();
  release->set_assignment_id(assignment.assignment_id());
  release->set_lease_epoch(assignment.lease_epoch());
  Say(board_, message);
  Wait(options_.cool_down + options_.tick);
  assignment = OneAssigned(board_);
  EXPECT_EQ(assignment.attempt(), 1);
  Accept(board_, assignment);
  release->set_device_fault(true);
  release->set_reason("fell off the bus");
  Say(board_, message);
  Wait(absl::Seconds(2));
  EXPECT_THAT(Assigned(board_), IsEmpty()) << "an old epoch releases nothing";
  release->set_lease_epoch(assignment.lease_epoch());
  Say(board_, message);
  Wait(options_.cool_down + options_.tick);
  EXPECT_EQ(OneAssigned(board_).attempt(), 2);
}

TEST_F(LeaseTest, AStalledTrackerMovesItsDeadlinesInsteadOfBlamingAgents) {
  const v1::Assignment assignment = Start();
  clock_.Advance(absl::Seconds(100));  // no tick: stopped
  core_->Tick();
  Drain();
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(Status("d1").running(), 1);
  Beat(board_, {assignment.assignment_id()});
  EXPECT_THAT(LastBeatAck(board_).renewed(),
              ElementsAre(assignment.assignment_id()));
}

TEST_F(LeaseTest, AStuckWorkLoopBehindALiveTimerLosesItsLease) {
  const v1::Assignment assignment = Start();
  BeatFor(absl::Minutes(12), /*work_ticks=*/5, {assignment.assignment_id()});
  EXPECT_THAT(Cancelled(board_), ElementsAre(assignment.assignment_id()));
  EXPECT_THAT(Assigned(board_), IsEmpty()) << "a stuck board gets no work";
  EXPECT_THAT(WaitReason(server_), testing::HasSubstr("stuck"));
  Beat(board_, {}, /*work_ticks=*/6);
  EXPECT_EQ(OneAssigned(board_).attempt(), 2);
}

TEST_F(LeaseTest, ABoardThatWasIdleForLongIsNotStuckAndGetsTheNextJob) {
  const v1::Assignment assignment = Start();
  Beat(board_, {assignment.assignment_id()}, /*work_ticks=*/5);
  Finish(board_, assignment);
  Commit(server_, Results(server_));
  BeatFor(absl::Minutes(3), /*work_ticks=*/5);
  EXPECT_EQ(Status("d1").state(), "idle");
  BeatFor(absl::Hours(1), /*work_ticks=*/5);
  EXPECT_EQ(Status("d1").state(), "idle");
  Submit(server_, {MakeWork(8, 0)});
  const v1::Assignment next = OneAssigned(board_);
  EXPECT_EQ(next.assignment_id(), "log1/8/0/0");
  // The counter's age before the dispatch does not count against it.
  Accept(board_, next);
  BeatFor(absl::Minutes(1), /*work_ticks=*/5, {next.assignment_id()});
  EXPECT_THAT(LastBeatAck(board_).renewed(), ElementsAre(next.assignment_id()));
  EXPECT_EQ(Status("d1").state(), "busy");
}

TEST_F(LeaseTest, AStepOfFiveMinutesIsNotAStuckWorkLoop) {
  const v1::Assignment assignment = Start();
  Beat(board_, {assignment.assignment_id()}, /*work_ticks=*/5);
  BeatFor(absl::Minutes(5), /*work_ticks=*/5, {assignment.assignment_id()});
  EXPECT_THAT(LastBeatAck(board_).renewed(),
              ElementsAre(assignment.assignment_id()));
  EXPECT_THAT(Cancelled(board_), IsEmpty());
}

TEST_F(LeaseTest, ABoardThatWasStuckIsTriedAgainAfterARest) {
  const v1::Assignment assignment = Start();
  BeatFor(absl::Minutes(12), /*work_ticks=*/5, {assignment.assignment_id()});
  EXPECT_EQ(Status("d1").state(), "suspect");
  EXPECT_THAT(Assigned(board_), IsEmpty());
  // Its killed trial moves no counter, so only new work can show it well.
  BeatFor(absl::Minutes(10), /*work_ticks=*/5);
  const auto again = Assigned(board_);  // repeatedly, since not accepted
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].attempt(), 2);
}

TEST_F(LeaseTest, ALastResultWithTrialsMissingQueuesTheRestAsANewAttempt) {
  Submit(server_, {MakeWork(7, 0, /*trials=*/2)});
  const v1::Assignment first = OneAssigned(board_);
  Accept(board_, first);
  SendResults(board_, {MakeResult(first, 1, /*last=*/true)});
  const v1::Assignment second = OneAssigned(board_);
  EXPECT_EQ(second.attempt(), 2);
  ASSERT_EQ(second.trials_size(), 1);
  EXPECT_EQ(second.trials(0).trial_id(), "7/0/0");
}

TEST_F(LeaseTest, AnInterleavedAssignmentIsRepeatedWhole) {
  v1::Work work = MakeWork(7, 0, /*trials=*/2);
  work.set_mode(v1::ASSIGNMENT_MODE_INTERLEAVE);
  Submit(server_, {work});
  const v1::Assignment first = OneAssigned(board_);
  Accept(board_, first);
  SendResults(board_, {MakeResult(first, 0, false)});
  EXPECT_EQ(KillAndReturn("i2").trials_size(), 2);
}

}  // namespace
}  // namespace regatta

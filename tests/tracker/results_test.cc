// Results, acknowledgements, cancelling and the bounded buffer.
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ResultsTest : public CoreTest {
 protected:
  ResultsTest() : server_(Attach()), board_(ConnectBoard("1", 2)) {}
  v1::Assignment Start(int trials = 1) {
    Submit(server_, {MakeWork(7, 0, trials)});
    const v1::Assignment assignment = OneAssigned(board_);
    Accept(board_, assignment);
    return assignment;
  }
  void Release(const v1::Assignment& assignment) {
    v1::AgentMessage message;
    v1::Release* release = message.mutable_release();
    release->set_assignment_id(assignment.assignment_id());
    release->set_lease_epoch(assignment.lease_epoch());
    Say(board_, message);
  }
  void BeatFor(absl::Duration d) {
    for (; d > absl::ZeroDuration(); d -= absl::Seconds(10)) {
      Wait(absl::Seconds(10));
      Beat(board_);
    }
  }

  StreamId server_;
  SessionId board_;
};

TEST_F(ResultsTest, AResultIsAckedOnlyAfterTheServersCommit) {
  Finish(board_, Start());
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].time_ns(), 1000);
  EXPECT_THAT(Acks(board_), IsEmpty());
  Commit(server_, results);
  ASSERT_THAT(Acks(board_), SizeIs(1));
}

TEST_F(ResultsTest, ResultsOfAnAssignmentStreamInOneByOne) {
  const v1::Assignment assignment = Start(/*trials=*/3);
  SendResults(board_, {MakeResult(assignment, 0, false)});
  EXPECT_THAT(Results(server_), SizeIs(1));
  EXPECT_EQ(Status("d1").running(), 1);
  SendResults(board_, {MakeResult(assignment, 1, false)});
  SendResults(board_, {MakeResult(assignment, 2, true)});
  EXPECT_THAT(Results(server_), SizeIs(2));
  EXPECT_EQ(Status("d1").running(), 0);
}

TEST_F(ResultsTest, AResultSentAgainBeforeTheCommitIsForwardedOnce) {
  const v1::Assignment assignment = Start();
  Finish(board_, assignment);
  Finish(board_, assignment);
  EXPECT_THAT(Results(server_), SizeIs(1));
}

TEST_F(ResultsTest, AResultSentAgainAfterTheCommitIsTheServersToJudge) {
  const v1::Assignment assignment = Start();
  Finish(board_, assignment);
  Commit(server_, Results(server_));
  Acks(board_);
  Finish(board_, assignment);  // the ack was lost
  const auto again = Results(server_);
  ASSERT_THAT(again, SizeIs(1));
  Commit(server_, again, v1::ACK_STATUS_DUPLICATE);
  const auto acks = Acks(board_);
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0].status(), v1::ACK_STATUS_DUPLICATE);
}

TEST_F(ResultsTest, TheAckGoesToTheSessionThatTheAgentHasNow) {
  const v1::Assignment assignment = Start();
  Finish(board_, assignment);
  Disconnect(board_);
  board_ = ConnectBoard("1");
  Commit(server_, Results(server_));
  EXPECT_THAT(Acks(board_), SizeIs(1));
}

TEST_F(ResultsTest, CommittedWorkIsForgottenAndMayBeSubmittedAnew) {
  Finish(board_, Start());
  Commit(server_, Results(server_));
  Submit(server_, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board_), SizeIs(1));
}

TEST_F(ResultsTest, AnAgentCannotCloseATrialAsCancelledOrLost) {
  const v1::Assignment assignment = Start();
  SendResults(board_, {MakeResult(assignment, 0, true, v1::OUTCOME_CANCELLED)});
  EXPECT_THAT(Results(server_), IsEmpty());
  const auto acks = Acks(board_);
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0].status(), v1::ACK_STATUS_REJECTED);
  EXPECT_EQ(OneAssigned(board_).attempt(), 1) << "it is to be run";
}

TEST_F(ResultsTest, AResultOfNoServerIsRejected) {
  v1::Assignment assignment;
  assignment.set_assignment_id("homeless");
  assignment.set_attempt(1);
  assignment.add_trials()->set_trial_id("1/0/0");
  Finish(board_, assignment);
  const auto acks = Acks(board_);
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0].status(), v1::ACK_STATUS_REJECTED);
  EXPECT_THAT(acks[0].reason(), testing::HasSubstr("homeless"));
}

TEST_F(ResultsTest, CancellingQueuedWorkReportsItAndRunsItNever) {
  const v1::Assignment first = Start();
  Submit(server_, {MakeWork(8, 0), MakeWork(8, 1)});  // one fits, one waits
  const v1::Assignment second = OneAssigned(board_);
  CancelJob(server_, 8);
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(2));
  for (const auto& result : results) {
    EXPECT_EQ(result.outcome(), v1::OUTCOME_CANCELLED);
  }
  EXPECT_THAT(Cancelled(board_), ElementsAre(second.assignment_id()));
  Commit(server_, results);
  EXPECT_THAT(Assigned(board_), IsEmpty());
  EXPECT_EQ(Status("d1").running(), 1) << "job 7 is untouched";
}

TEST_F(ResultsTest, CancellingFreesTheCreditForOtherWorkAtOnce) {
  Start();
  Submit(server_, {MakeWork(8, 0)});
  OneAssigned(board_);
  Submit(server_, {MakeWork(9, 0)});
  CancelJob(server_, 8);
  EXPECT_EQ(OneAssigned(board_).assignment_id(), "log1/9/0/0");
}

TEST_F(ResultsTest, AResultUnderWayWhenItsWorkIsCancelledIsTheOneThatCounts) {
  const v1::Assignment assignment = Start(/*trials=*/2);
  CancelJob(server_, 7);
  EXPECT_THAT(Cancelled(board_), ElementsAre(assignment.assignment_id()));
  EXPECT_THAT(Results(server_), IsEmpty());
  Release(assignment);
  SendResults(board_, {MakeResult(assignment, 0, false)});
  auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_OK);
  Commit(server_, results);
  EXPECT_THAT(Acks(board_), SizeIs(1));
  Wait(absl::Milliseconds(1500));  // only the other one was cut off
  results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_CANCELLED);
  EXPECT_EQ(results[0].spec().trial_id(), "7/0/1");
  Commit(server_, results);
  EXPECT_THAT(Assigned(board_), IsEmpty());
  Submit(server_, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board_), SizeIs(1)) << "the work was forgotten";
}

TEST_F(ResultsTest, WhenAllResultsWereUnderWayNothingIsReportedAsCancelled) {
  const v1::Assignment assignment = Start();
  CancelJob(server_, 7);
  Finish(board_, assignment);
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_OK);
  Wait(absl::Seconds(6));
  EXPECT_THAT(Results(server_), IsEmpty());
}

TEST_F(ResultsTest, AnAgentThatSaysNothingDelaysACancelByFiveSeconds) {
  Start();
  CancelJob(server_, 7);
  CancelJob(server_, 7);
  Wait(absl::Milliseconds(4500));
  EXPECT_THAT(Results(server_), IsEmpty());
  Wait(absl::Seconds(1));
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_CANCELLED);
}

TEST_F(ResultsTest, AServerThatStaysAwayDoesNotKeepWorkFromOthers) {
  options_.max_buffered_results = 5;
  Reconfigure();
  server_ = Attach();
  board_ = ConnectBoard("1", /*credit=*/4);
  Submit(server_,
         {MakeWork(7, 0), MakeWork(7, 1), MakeWork(7, 2), MakeWork(7, 3)});
  const auto assigned = Assigned(board_);
  ASSERT_THAT(assigned, SizeIs(4));
  core_->ServerClosed(server_);
  for (const auto& assignment : assigned) Finish(board_, assignment);
  const StreamId other = Attach("log2");
  Submit(other, {MakeWork(1, 0)});
  EXPECT_THAT(Assigned(board_), IsEmpty()) << "four of five is 80 %";
  BeatFor(options_.server_away + absl::Seconds(20));
  EXPECT_THAT(Ids(Assigned(board_)), testing::Contains("log2/1/0/0"));
  // What agents send again in the meantime stays with them.
  for (const auto& assignment : assigned) Finish(board_, assignment);
  EXPECT_THAT(Acks(board_), IsEmpty());
  Submit(other, {MakeWork(1, 1)});
  EXPECT_THAT(Ids(Assigned(board_)), ElementsAre("log2/1/0/1"));
  // The server comes back after all and gets its results.
  server_ = Attach();
  ASSERT_TRUE(agents_[board_].closed.has_value()) << "to send its spool again";
  board_ = ConnectBoard("1", 4);
  for (const auto& assignment : assigned) Finish(board_, assignment);
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(4));
  Commit(server_, results);
  EXPECT_THAT(Acks(board_), SizeIs(4));
}

TEST_F(ResultsTest, WorkCancelledWhileItsAgentIsAwayIsAbandonedOnReturn) {
  const v1::Assignment assignment = Start();
  Disconnect(board_);
  CancelJob(server_, 7);
  Wait(absl::Seconds(6));
  Commit(server_, Results(server_));
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1", 2)});
  *hello.add_held() = Held(assignment);
  board_ = Connect(hello);
  EXPECT_EQ(Welcomed(board_).verdicts(0).verdict(), v1::VERDICT_ABANDON);
}

TEST_F(ResultsTest, AFullBufferStopsNewWorkAndLosesNothing) {
  options_.max_buffered_results = 5;
  Reconfigure();
  server_ = Attach();
  board_ = ConnectBoard("1", /*credit=*/8);
  std::vector<v1::Work> works;
  for (int i = 0; i < 8; ++i) works.push_back(MakeWork(7, i));
  Submit(server_, works);
  const auto assigned = Assigned(board_);
  ASSERT_THAT(assigned, SizeIs(8));
  core_->ServerClosed(server_);
  for (const auto& assignment : assigned) {
    Accept(board_, assignment);
    Finish(board_, assignment);
  }
  // Five are kept; the other three stay in the agent's spool.
  server_ = Attach();
  const auto kept = Results(server_);
  ASSERT_THAT(kept, SizeIs(5));
  Submit(server_, {MakeWork(8, 0)});
  EXPECT_THAT(Assigned(board_), IsEmpty());
  Wait(absl::Seconds(2));
  EXPECT_THAT(LastWaits(server_)->jobs(0).reason().text(),
              testing::HasSubstr("wait for a server's commit"));
  Commit(server_, kept);
  EXPECT_THAT(Acks(board_), SizeIs(5));
  ASSERT_TRUE(agents_[board_].closed.has_value())
      << "the agent must connect again to send its spool again";
  EXPECT_EQ(agents_[board_].closed->code(), absl::StatusCode::kUnavailable);
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1", 8)});
  hello.set_spooled_results(3);
  board_ = Connect(hello);
  for (int i = 5; i < 8; ++i) Finish(board_, assigned[i]);
  const auto rest = Results(server_);
  ASSERT_THAT(rest, SizeIs(3));
  Commit(server_, rest);
  EXPECT_THAT(Acks(board_), SizeIs(3));
}

TEST_F(ResultsTest, WorkGoesOutAgainAsSoonAsTheBufferHasRoom) {
  options_.max_buffered_results = 5;
  Reconfigure();
  server_ = Attach();
  board_ = ConnectBoard("1", /*credit=*/4);
  Submit(server_, {MakeWork(7, 0), MakeWork(7, 1), MakeWork(7, 2),
                   MakeWork(7, 3), MakeWork(7, 4)});
  const auto assigned = Assigned(board_);
  ASSERT_THAT(assigned, SizeIs(4));
  SendResults(
      board_,
      {MakeResult(assigned[0], 0, true), MakeResult(assigned[1], 0, true),
       MakeResult(assigned[2], 0, true), MakeResult(assigned[3], 0, true)});
  EXPECT_THAT(Assigned(board_), IsEmpty()) << "four of five is 80 %";
  Commit(server_, Results(server_));
  EXPECT_THAT(Ids(Assigned(board_)), ElementsAre("log1/7/0/4"));
}

TEST_F(ResultsTest, AResultOfAnEarlierDispatchDoesNotEndTheLaterOne) {
  Submit(server_, {MakeWork(7, 0, /*trials=*/2)});
  const v1::Assignment first = OneAssigned(board_);
  Wait(absl::Seconds(7));  // never accepted, so sent again
  const v1::Assignment second = OneAssigned(board_);
  Accept(board_, second);
  SendResults(board_, {MakeResult(first, 0, /*last=*/true)});
  EXPECT_THAT(Results(server_), SizeIs(1)) << "it counts all the same";
  EXPECT_EQ(Status("d1").running(), 1);
  SendResults(board_, {MakeResult(second, 1, /*last=*/true)});
  EXPECT_EQ(Status("d1").running(), 0);
}

TEST_F(ResultsTest, LargeBacklogsAreForwardedInMessagesBelowOneMebibyte) {
  core_->ServerClosed(server_);
  v1::Assignment assignment;
  assignment.set_attempt(1);
  for (int i = 0; i < 30; ++i) {
    assignment.set_assignment_id(absl::StrCat("log1/9/0/", i));
    assignment.clear_trials();
    assignment.add_trials()->set_trial_id(absl::StrCat("9/0/", i));
    v1::SpooledResult spooled = MakeResult(assignment, 0, true);
    spooled.mutable_result()->set_detail(std::string(100'000, 'x'));
    SendResults(board_, {spooled});
  }
  server_ = Attach();
  size_t results = 0;
  for (const auto& event : servers_[server_].events) {
    EXPECT_LT(event.ByteSizeLong(), size_t{1} << 20);
    results += event.results().results_size();
  }
  EXPECT_EQ(results, 30u);
}

}  // namespace
}  // namespace regatta

// Boards that have their modules from builders while none is here: they wait,
// and nothing of that is held against them.
#include "tests/tracker/builder_hellos.h"
#include "tests/tracker/canary_fixture.h"

namespace regatta {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BuilderWaitTest : public CanaryTest {
 protected:
  void ConnectBuilder() {
    builder_ = Connect(AsBuilder(MakeHello("b", {}), kCompiler));
  }
  void LoseBuilder() {
    Disconnect(*builder_);
    builder_.reset();
  }
  SessionId ConnectMeasureOnly() {
    return Connect(
        AsMeasureOnly(MakeHello("a1", {MakeDevice("d1")}), kCompiler));
  }
  StreamId AttachWithItsCanary() {
    const StreamId server = Attach();
    Offer(server, {MakeCanary("compute", kMeasureOnlyTarget)});
    return server;
  }
  // With the heartbeats of whoever is there.
  void WaitBeating(SessionId board, absl::Duration d,
                   const std::vector<std::string>& held = {}) {
    for (absl::Duration left = d; left > absl::ZeroDuration();
         left -= absl::Seconds(10)) {
      Wait(absl::Seconds(10));
      Beat(board, held);
      if (builder_) Beat(*builder_);
    }
  }

 private:
  std::optional<SessionId> builder_;
};

TEST_F(BuilderWaitTest, ABoardThatOwesACanaryWaitsForItsBuilderFirst) {
  const StreamId server = AttachWithItsCanary();
  ConnectBuilder();
  const SessionId board = ConnectMeasureOnly();
  Pass(board, OneAssigned(board));
  ASSERT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  LoseBuilder();
  Control(v1::DEVICE_COMMAND_QUARANTINE, "d1");
  Control(v1::DEVICE_COMMAND_RELEASE, "d1");
  ASSERT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  Submit(server, {MakeWork(7, 0)});
  WaitBeating(board, absl::Minutes(10));
  EXPECT_THAT(Assigned(board), IsEmpty());
  EXPECT_EQ(Status("d1").state(), "waiting");
  EXPECT_THAT(Status("d1").obstacle(), HasSubstr("waiting for a builder: "));
  EXPECT_EQ(WaitReason(server),
            "board d1 waits for a builder of compiler c1: none that it trusts "
            "is online");
  EXPECT_THAT(Events("d1"), Not(Contains("canary failed")));
  ConnectBuilder();
  EXPECT_EQ(Status("d1").state(), "checking");
  const v1::Assignment round = OneAssigned(board);
  ASSERT_TRUE(IsCanary(round));
  Pass(board, round);
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/0");
}

TEST_F(BuilderWaitTest, ACanaryHasNoLessTimeForABuilderThatIsAway) {
  AttachWithItsCanary();
  ConnectBuilder();
  const SessionId board = ConnectMeasureOnly();
  const v1::Assignment round = OneAssigned(board);
  ASSERT_TRUE(IsCanary(round));
  Accept(board, round);
  LoseBuilder();
  WaitBeating(board, 3 * options_.canary_limit, {round.assignment_id()});
  EXPECT_THAT(Cancelled(board), IsEmpty());
  ConnectBuilder();
  WaitBeating(board, options_.canary_limit - absl::Seconds(20),
              {round.assignment_id()});
  EXPECT_THAT(Cancelled(board), IsEmpty());
  Pass(board, round);
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  EXPECT_THAT(Events("d1"), Not(Contains("canary failed")));
}

TEST_F(BuilderWaitTest, ACanaryThatABuilderDoesNotEndFailsAllTheSame) {
  AttachWithItsCanary();
  ConnectBuilder();
  const SessionId board = ConnectMeasureOnly();
  const v1::Assignment round = OneAssigned(board);
  Accept(board, round);
  WaitBeating(board, options_.canary_limit + absl::Seconds(10),
              {round.assignment_id()});
  EXPECT_THAT(Events("d1"), Contains("canary failed"));
}

TEST_F(BuilderWaitTest, WhatNobodyBuiltIsNoFailureOfTheBoard) {
  const StreamId server = AttachWithItsCanary();
  ConnectBuilder();
  const SessionId board = ConnectMeasureOnly();
  Pass(board, OneAssigned(board));
  Submit(server, {MakeWork(7, 0)});
  for (int attempt = 1; attempt <= options_.max_attempts; ++attempt) {
    const v1::Assignment work = OneAssigned(board);
    ASSERT_EQ(work.attempt(), attempt);
    Accept(board, work);
    v1::SpooledResult lost =
        MakeResult(work, 0, /*last=*/true, v1::OUTCOME_AGENT_LOST);
    lost.mutable_result()->set_detail("waited 2m for a builder");
    SendResults(board, {lost});
    EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  }
  const std::vector<v1::TrialResult> results = Results(server);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_AGENT_LOST);
  EXPECT_THAT(results[0].detail(), HasSubstr("waited 2m for a builder"));
  EXPECT_THAT(Events("d1"), Not(Contains("device failure")));
}

}  // namespace
}  // namespace regatta

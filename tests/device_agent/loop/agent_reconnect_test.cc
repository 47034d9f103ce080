// When an agent that lost its tracker tries again.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/agent_loop_harness.h"

namespace regatta {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using AgentReconnectTest = AgentLoopTest;

TEST_F(AgentReconnectTest, ARestartedLocalTrackerIsFoundWithinASecond) {
  for (int round = 0; round < 20; ++round) {
    ConnectWelcomed();
    Pass(absl::Seconds(6));
    AckHeartbeat({});
    loop_->OnDisconnected(absl::UnavailableError("gone"));
    connected_ = false;
    const SteadyTime start = clock_.Steady();
    SteadyTime last = start;
    while (true) {
      clock_.Advance(loop_->NextWake() - clock_.Steady());
      Tick();
      const absl::Duration gap = clock_.Steady() - last;
      if (clock_.Steady() - start > absl::Seconds(1)) break;
      EXPECT_GE(gap, absl::Milliseconds(100));
      EXPECT_LE(gap, absl::Milliseconds(500));
      last = clock_.Steady();
      loop_->OnDisconnected(absl::UnavailableError("refused"));
      connected_ = false;
    }
    EXPECT_GT(last, start);
    loop_->OnDisconnected(absl::UnavailableError("refused"));
    connected_ = false;
  }
}

// However often a tracker dies soon after its welcome, it is looked for again
// at once, as one that keeps being restarted deserves.
TEST_F(AgentReconnectTest, ATrackerThatKeepsDyingYoungIsFoundAgainSoon) {
  for (int round = 0; round < 20; ++round) {
    ConnectWelcomed();
    Pass(absl::Seconds(1));
    loop_->OnDisconnected(absl::UnavailableError("gone"));
    connected_ = false;
    EXPECT_LE(loop_->NextWake() - clock_.Steady(), absl::Seconds(2)) << round;
    clock_.Advance(loop_->NextWake() - clock_.Steady());
    Tick();
  }
}

TEST_F(AgentReconnectTest, AnUnreachableTrackerIsTriedEverMoreRarely) {
  for (int i = 0; i < 200; ++i) {
    clock_.Advance(loop_->NextWake() - clock_.Steady());
    Tick();
    loop_->OnDisconnected(absl::UnavailableError("refused"));
  }
  // 190 tries at a mean of 15 s.
  const double hours = absl::ToDoubleHours(clock_.Steady() - SteadyTime{});
  EXPECT_GT(hours, 0.6);
  EXPECT_LT(hours, 1.0);
}

TEST_F(AgentReconnectTest, ANameTakenByAnotherAgentIsNotFoughtOver) {
  ConnectWelcomed();
  loop_->OnDisconnected(absl::AbortedError("a newer session took over"));
  EXPECT_GE(loop_->NextWake() - clock_.Steady(), absl::Seconds(15));
}

// What ends between the Hello and the Welcome is told after that: nothing else
// shows the tracker that it is free.
TEST_F(AgentReconnectTest, WorkThatEndsDuringTheHandshakeIsGivenBack) {
  ConnectWelcomed();
  const SteadyTime assigned = clock_.Steady();
  Assign(TestAssignment("finishing", 4, 2));
  v1::Assignment brief = TestAssignment("curtailed", 5, 2);
  brief.set_lease_ms(8'000);  // curtailed after 6.4 s
  Assign(brief);
  Assign(TestAssignment("done", 6));
  loop_->OnDrain("leaving", absl::ZeroDuration());
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  ConnectAtOnce();
  EXPECT_THAT(HeldInHello(),
              UnorderedElementsAre("finishing", "curtailed", "done"));
  loop_->OnFinished("finishing");
  Finish(TestAssignment("done", 6), 0);
  clock_.Advance(assigned + absl::Milliseconds(6'500) - clock_.Steady());
  Tick();
  EXPECT_FALSE(loop_->drained()) << "the tracker does not know yet";
  Clear();
  v1::TrackerMessage welcome = WelcomeMessage();
  for (const auto& [id, epoch] :
       {std::pair("finishing", 4), std::pair("curtailed", 5),
        std::pair("done", 6)}) {
    v1::HeldVerdict& verdict = *welcome.mutable_welcome()->add_verdicts();
    verdict.set_assignment_id(id);
    verdict.set_verdict(v1::VERDICT_CONTINUE);
    verdict.set_lease_epoch(epoch);
  }
  Receive(welcome);
  ASSERT_EQ(Releases().size(), 2u);
  EXPECT_EQ(Releases()[0].assignment_id(), "finishing");
  EXPECT_EQ(Releases()[0].lease_epoch(), 4);
  EXPECT_EQ(Releases()[1].assignment_id(), "curtailed");
  EXPECT_EQ(Releases()[1].lease_epoch(), 5);
  EXPECT_EQ(SentTrials(), std::vector<std::string>{"done/0"});
}

TEST_F(AgentReconnectTest, AGoodbyeNamesTheTimeToComeBack) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  v1::TrackerMessage message;
  message.mutable_goodbye()->set_reconnect_after_ms(5'000);
  Receive(message);
  EXPECT_EQ(closed_.size(), 1u);
  EXPECT_THAT(stopped_, IsEmpty());
  const absl::Duration wait = loop_->NextWake() - clock_.Steady();
  EXPECT_GE(wait, absl::Seconds(5));
  EXPECT_LE(wait, absl::Milliseconds(5'500));
}

}  // namespace
}  // namespace regatta

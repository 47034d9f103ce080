// When an agent that lost its tracker tries again.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/agent_loop_harness.h"

namespace regatta {
namespace {

using ::testing::IsEmpty;

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

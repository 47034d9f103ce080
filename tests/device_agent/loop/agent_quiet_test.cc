// Silence while runs are timed.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/agent_loop_harness.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AgentQuietTest : public AgentLoopTest {
 protected:
  void Window(absl::Duration longest, const std::string& device = "board") {
    loop_->OnWindow(device, longest);
    Tick();
  }
  // Up to 9 s without a heartbeat, so that one is due soon.
  void NearlyDue() {
    clock_.Advance(absl::Milliseconds(8'900));
    Clear();
  }
};

TEST_F(AgentQuietTest, AHeartbeatThatWouldDisturbARunIsSentBeforeIt) {
  ConnectWelcomed();
  NearlyDue();
  Window(absl::Seconds(15));
  ASSERT_THAT(Heartbeats(), SizeIs(1));
  EXPECT_EQ(Heartbeats()[0].quiet_ms(), 15'000);
  Clear();
  Pass(absl::Milliseconds(14'900));
  EXPECT_THAT(sent_, IsEmpty());
  Pass(absl::Milliseconds(200));
  EXPECT_THAT(Heartbeats(), SizeIs(1));
  EXPECT_EQ(Heartbeats()[0].quiet_ms(), 0);
}

TEST_F(AgentQuietTest, SilenceEndsWithTheRun) {
  ConnectWelcomed();
  NearlyDue();
  Window(absl::Seconds(15));
  Clear();
  Pass(absl::Seconds(12));
  EXPECT_THAT(sent_, IsEmpty());
  Window(absl::ZeroDuration());  // and the heartbeat is overdue
  EXPECT_THAT(Heartbeats(), SizeIs(1));
}

TEST_F(AgentQuietTest, NobodyIsSilentForMoreThanThirtySeconds) {
  ConnectWelcomed();
  NearlyDue();
  Window(absl::Minutes(5));
  EXPECT_EQ(Heartbeats().at(0).quiet_ms(), 30'000);
  AckHeartbeat({});
  Clear();
  Pass(absl::Seconds(31));
  EXPECT_THAT(Heartbeats(), SizeIs(1));
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(AgentQuietTest, ManyShortRunsDoNotMakeManyHeartbeats) {
  ConnectWelcomed();
  for (int i = 0; i < 1000; ++i) {
    Window(absl::Seconds(10));
    Pass(absl::Milliseconds(80));
    Window(absl::ZeroDuration());
    Pass(absl::Milliseconds(20));
    if (!Heartbeats().empty()) AckHeartbeat({});
  }
  // 100 s at one in 10 s; never more than twice as many.
  EXPECT_GE(Heartbeats().size(), 9u);
  EXPECT_LE(Heartbeats().size(), 20u);
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(AgentQuietTest, ResultsAndDevicesWaitForTheEndOfTheRun) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 2);
  Assign(a);
  Clear();
  Window(absl::Seconds(3));
  Finish(a, 0);
  std::vector<v1::DeviceInfo> devices = {TestHello().devices(0)};
  devices[0].set_health("ok");
  loop_->OnDevices(devices);
  Pass(absl::Seconds(2));
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_THAT(disk_.durable, ::testing::HasSubstr("a/0"));  // safe meanwhile
  Window(absl::ZeroDuration());
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
  ASSERT_THAT(sent_, SizeIs(2));
  EXPECT_TRUE(sent_[0].has_device_update());
}

TEST_F(AgentQuietTest, WhatWaitedIsSentWhenARunOutlastsTheSilence) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 2);
  Assign(a);
  Window(absl::Seconds(3));
  Finish(a, 0);
  Clear();
  Pass(absl::Milliseconds(3'100));
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
}

TEST_F(AgentQuietTest, DevicesThatOverlapKeepResultsBackForTwoSecondsAtMost) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 2);
  Assign(a);
  Window(absl::Seconds(20), "board");
  Window(absl::Seconds(20), "gpu");
  Finish(a, 0);
  Clear();
  Pass(absl::Milliseconds(1'900));
  EXPECT_THAT(sent_, IsEmpty());
  Pass(absl::Milliseconds(200));
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
}

TEST_F(AgentQuietTest, AnswersAndReleasesAreNotPutOff) {
  ConnectWelcomed();
  Window(absl::Seconds(20));
  Clear();
  Assign(TestAssignment("a"));
  EXPECT_THAT(Replies(), SizeIs(1));
  v1::TrackerMessage cancel;
  cancel.mutable_cancel()->add_assignment_ids("a");
  Receive(cancel);
  EXPECT_THAT(Releases(), SizeIs(1));
}

// A tracker that hears of the release first gives the trial to another board.
TEST_F(AgentQuietTest, AReleaseDoesNotOvertakeTheResultsBeforeIt) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 4, 3);
  Assign(a);
  Assign(TestAssignment("b", 5, 2));
  Window(absl::Seconds(20));
  v1::TrackerMessage drain;
  drain.mutable_drain()->add_device_ids("board");
  Receive(drain);
  Clear();
  // Nothing of b waits.
  loop_->OnFinished("b");
  Collect();
  ASSERT_THAT(Releases(), SizeIs(1));
  EXPECT_EQ(Releases()[0].assignment_id(), "b");
  Window(absl::Seconds(20));
  Clear();
  Finish(a, 0);
  loop_->OnFinished("a");
  Collect();
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_FALSE(loop_->drained());
  Window(absl::ZeroDuration());
  ASSERT_THAT(sent_, SizeIs(2));
  EXPECT_TRUE(sent_[0].has_result_batch());
  EXPECT_EQ(sent_[1].release().assignment_id(), "a");
}

TEST_F(AgentQuietTest, ALeaseIsRenewedInTimeAllTheSame) {
  ConnectWelcomed();
  v1::Assignment a = TestAssignment("a", 1, 2);
  a.set_lease_ms(30'000);  // curtailed after 24 s
  Assign(a);
  NearlyDue();
  Window(absl::Seconds(30));
  ASSERT_THAT(Heartbeats(), SizeIs(1));
  Clear();
  Pass(absl::Seconds(14));
  ASSERT_THAT(Heartbeats(), SizeIs(1));
  EXPECT_GT(Heartbeats()[0].quiet_ms(), 0);
  EXPECT_THAT(Releases(), IsEmpty());
}

TEST_F(AgentQuietTest, ATrackerThatAgreedIsNotTakenForGoneMeanwhile) {
  ConnectWelcomed();
  NearlyDue();
  Window(absl::Seconds(30));
  AckHeartbeat({});
  Pass(absl::Seconds(29));
  Window(absl::ZeroDuration());
  // It was last heard of 29 s ago; three heartbeats' patience begin now.
  Pass(absl::Seconds(30));
  EXPECT_THAT(closed_, IsEmpty());
  Pass(absl::Seconds(5));
  EXPECT_THAT(closed_, SizeIs(1));
}

TEST_F(AgentQuietTest, ATrackerThatDiedIsNoticedHoweverManyRunsThereAre) {
  ConnectWelcomed();
  for (int i = 0; i < 340 && closed_.empty(); ++i) {
    Window(absl::Seconds(10));
    Pass(absl::Milliseconds(80));
    Window(absl::ZeroDuration());
    Pass(absl::Milliseconds(20));
  }
  EXPECT_THAT(closed_, SizeIs(1));
}

TEST_F(AgentQuietTest, AnAgentThatLeavesSaysAllThatItHas) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 2);
  Assign(a);
  Window(absl::Seconds(20));
  Finish(a, 0);
  Clear();
  loop_->OnDrain("told to stop", absl::ZeroDuration());
  Collect();
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
}

}  // namespace
}  // namespace regatta

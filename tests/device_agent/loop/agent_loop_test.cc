#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/agent_loop_harness.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// ---- greeting ----

TEST_F(AgentLoopTest, ConnectsAtOnceAndGreetsWithWhatItIs) {
  Tick();
  EXPECT_EQ(connects_, 1);
  EXPECT_THAT(sent_, IsEmpty());
  loop_->OnConnected();
  Collect();
  ASSERT_EQ(sent_.size(), 1u);
  const v1::Hello hello = sent_[0].hello();
  EXPECT_EQ(hello.protocol_version(), 1);
  EXPECT_EQ(hello.agent_id(), "board");
  EXPECT_EQ(hello.compiler_version(), "c1");
  EXPECT_EQ(hello.devices(0).device_class(), "zen-2c");
  EXPECT_EQ(hello.spooled_results(), 0);
}

TEST_F(AgentLoopTest, DoesNothingForATrackerThatHasNotWelcomedIt) {
  ConnectAtOnce();
  Clear();
  Assign(TestAssignment("a"));
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_THAT(sent_, IsEmpty());
}

TEST_F(AgentLoopTest, GivesUpATrackerThatDoesNotWelcomeIt) {
  ConnectAtOnce();
  Pass(absl::Milliseconds(29'900));
  EXPECT_THAT(closed_, IsEmpty());
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(closed_.size(), 1u);
}

TEST_F(AgentLoopTest, HelloListsWhatIsHeldAndWelcomeDecides) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  Assign(TestAssignment("b"));
  Assign(TestAssignment("c"));
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  Clear();
  ConnectAtOnce();
  EXPECT_THAT(HeldInHello(), UnorderedElementsAre("a", "b", "c"));
  v1::TrackerMessage welcome = WelcomeMessage();
  v1::HeldVerdict* verdict = welcome.mutable_welcome()->add_verdicts();
  verdict->set_assignment_id("a");
  verdict->set_verdict(v1::VERDICT_CONTINUE);
  verdict->set_lease_ms(60'000);
  verdict->set_lease_epoch(5);
  verdict = welcome.mutable_welcome()->add_verdicts();
  verdict->set_assignment_id("b");
  verdict->set_verdict(v1::VERDICT_ABANDON);
  Receive(welcome);
  // "c" got no verdict: not ours either.
  EXPECT_THAT(stopped_, UnorderedElementsAre("b", "c"));
  EXPECT_TRUE(loop_->gate().MayStart("a"));
  EXPECT_FALSE(loop_->gate().MayStart("b"));
  // The result carries the epoch that the tracker counts now.
  Finish(TestAssignment("a"), 0);
  ASSERT_EQ(Batches().size(), 1u);
  EXPECT_EQ(Batches()[0].results(0).result().lease_epoch(), 5);
  EXPECT_TRUE(Batches()[0].results(0).last());
}

// ---- assignments ----

TEST_F(AgentLoopTest, AcceptsAndStartsWhatFits) {
  ConnectWelcomed();
  Assign(TestAssignment("a", 7));
  ASSERT_EQ(Replies().size(), 1u);
  EXPECT_TRUE(Replies()[0].accepted()) << Replies()[0].reason();
  EXPECT_EQ(Replies()[0].lease_epoch(), 7);
  EXPECT_THAT(started_, ElementsAre("a"));
  EXPECT_TRUE(loop_->gate().MayStart("a"));
}

TEST_F(AgentLoopTest, ADeviceMayHaveACompilerAndSpaceOfItsOwn) {
  v1::DeviceInfo device = TestHello().devices(0);
  device.set_compiler_version("c7");
  device.set_space("opencl");
  device.set_space_version(9);
  loop_->OnDevices({device});
  ConnectWelcomed();
  Assign(TestAssignment("a", 7));
  v1::Assignment fitting = TestAssignment("b", 8);
  for (v1::TrialSpec& trial : *fitting.mutable_trials()) {
    trial.set_compiler_version("c7");
    trial.mutable_schedule()->set_space("opencl");
    trial.mutable_schedule()->set_space_version(9);
  }
  Assign(fitting);
  ASSERT_EQ(Replies().size(), 2u);
  EXPECT_FALSE(Replies()[0].accepted());
  EXPECT_THAT(Replies()[0].reason(), HasSubstr("compiler version differs"));
  EXPECT_TRUE(Replies()[1].accepted()) << Replies()[1].reason();
}

TEST_F(AgentLoopTest, RefusesWhatDoesNotFitAndSaysWhy) {
  struct Case {
    const char* reason;
    void (*spoil)(v1::Assignment&);
  };
  const Case cases[] = {
      {"compiler version differs",
       [](v1::Assignment& a) {
         a.mutable_trials(0)->set_compiler_version("c2");
       }},
      {"space version differs",
       [](v1::Assignment& a) {
         a.mutable_trials(0)->mutable_schedule()->set_space_version(4);
       }},
      {"space version differs",
       [](v1::Assignment& a) {
         a.mutable_trials(0)->mutable_schedule()->set_space("cuda");
       }},
      {"unknown device \"other\"",
       [](v1::Assignment& a) { a.set_device_id("other"); }},
      {"device class differs",
       [](v1::Assignment& a) {
         a.mutable_trials(0)->set_device_class("neon-4c");
       }},
      {"target differs",
       [](v1::Assignment& a) {
         a.mutable_trials(0)->set_target("cpu,mcpu=znver5");
       }},
      {"malformed: no trials", [](v1::Assignment& a) { a.clear_trials(); }},
      {"malformed: no assignment_id",
       [](v1::Assignment& a) { a.clear_assignment_id(); }},
      {"malformed: a trial without id",
       [](v1::Assignment& a) { a.mutable_trials(0)->clear_trial_id(); }},
      {"malformed: trial x/0 twice",
       [](v1::Assignment& a) { *a.add_trials() = a.trials(0); }},
      {"malformed: unknown mode", [](v1::Assignment& a) { a.clear_mode(); }},
      {"malformed: attempt 0", [](v1::Assignment& a) { a.clear_attempt(); }},
      {"malformed: 65 trials",
       [](v1::Assignment& a) {
         for (int i = 1; i < 65; ++i) {
           *a.add_trials() = a.trials(0);
           a.mutable_trials(i)->set_trial_id(absl::StrCat("x/", i));
         }
       }},
      {"malformed: ",
       [](v1::Assignment& a) {
         a.mutable_trials(0)->set_workload(std::string(1 << 20, 'w'));
       }},
  };
  ConnectWelcomed();
  for (const Case& one : cases) {
    Clear();
    v1::Assignment assignment = TestAssignment("x");
    one.spoil(assignment);
    Assign(assignment);
    ASSERT_EQ(Replies().size(), 1u) << one.reason;
    EXPECT_FALSE(Replies()[0].accepted()) << one.reason;
    EXPECT_THAT(Replies()[0].reason(), HasSubstr(one.reason));
    EXPECT_THAT(started_, IsEmpty());
  }
}

TEST_F(AgentLoopTest, HoldsNoMoreThanItsCredit) {
  ConnectWelcomed();
  for (const char* id : {"a", "b", "c", "d"}) Assign(TestAssignment(id));
  EXPECT_THAT(started_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(Replies()[3].reason(), HasSubstr("no credit: holds 3 of 3"));
  Finish(TestAssignment("b"), 0);
  Assign(TestAssignment("d"));
  EXPECT_THAT(started_, ElementsAre("a", "b", "c", "d"));
}

TEST_F(AgentLoopTest, RefusesWorkWhenTheSpoolIsFourFifthsFull) {
  limits_.max_results = 5;
  Restart();
  ConnectWelcomed();
  Assign(TestAssignment("a", 1, 4));
  for (int i = 0; i < 3; ++i) Finish(TestAssignment("a", 1, 4), i);
  Assign(TestAssignment("b"));
  EXPECT_TRUE(Replies().back().accepted());
  Finish(TestAssignment("a", 1, 4), 3);
  Assign(TestAssignment("c"));
  EXPECT_FALSE(Replies().back().accepted());
  EXPECT_THAT(Replies().back().reason(), HasSubstr("80 % full"));
  Ack("a/0", v1::ACK_STATUS_STORED);
  Assign(TestAssignment("d"));
  EXPECT_TRUE(Replies().back().accepted());
}

TEST_F(AgentLoopTest, AnAssignmentSentTwiceIsAnsweredTwiceAndRunOnce) {
  ConnectWelcomed();
  Assign(TestAssignment("a", 3));
  Assign(TestAssignment("a", 3));
  Assign(TestAssignment("a", 4));
  EXPECT_THAT(started_, ElementsAre("a"));
  ASSERT_EQ(Replies().size(), 3u);
  EXPECT_TRUE(Replies()[2].accepted());
  // One of an earlier epoch is a late copy.
  Assign(TestAssignment("a", 3));
  EXPECT_EQ(Replies().size(), 3u);
}

TEST_F(AgentLoopTest, CancelStopsTheWorkAndGivesItBack) {
  ConnectWelcomed();
  Assign(TestAssignment("a", 6));
  v1::TrackerMessage message;
  message.mutable_cancel()->add_assignment_ids("a");
  message.mutable_cancel()->add_assignment_ids("unknown");
  Receive(message);
  EXPECT_THAT(stopped_, ElementsAre("a"));
  ASSERT_EQ(Releases().size(), 1u);
  EXPECT_EQ(Releases()[0].lease_epoch(), 6);
  EXPECT_EQ(loop_->held(), 0);
}

TEST_F(AgentLoopTest, ADrainFinishesWhatIsHeldAndTakesNothingNew) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  v1::TrackerMessage message;
  message.mutable_drain()->set_reason("maintenance");
  Receive(message);
  EXPECT_THAT(stopped_, IsEmpty());
  Assign(TestAssignment("b"));
  EXPECT_EQ(Replies().back().reason(), "draining");
  Finish(TestAssignment("a"), 0);
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
}

TEST_F(AgentLoopTest, ADrainOfDevicesGivesTheRestBackAfterTheLastResult) {
  ConnectWelcomed();
  Assign(TestAssignment("a", 4, 3));
  v1::TrackerMessage message;
  message.mutable_drain()->add_device_ids("another");
  Receive(message);
  EXPECT_THAT(finishing_, IsEmpty());
  message.mutable_drain()->add_device_ids("board");
  Receive(message);
  EXPECT_THAT(finishing_, ElementsAre("a"));
  EXPECT_FALSE(loop_->gate().MayStart("a"));
  // A renewal does not let it start again.
  Pass(absl::Seconds(11));
  v1::TrackerMessage ack;
  ack.mutable_heartbeat_ack()->set_sequence(1);
  ack.mutable_heartbeat_ack()->set_lease_ms(60'000);
  ack.mutable_heartbeat_ack()->add_renewed("a");
  Receive(ack);
  EXPECT_FALSE(loop_->gate().MayStart("a"));
  Clear();
  loop_->OnResult("a", ResultOf(TestAssignment("a", 4, 3), 0), false);
  loop_->OnFinished("a");
  Collect();
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(sent_[0].has_result_batch());
  EXPECT_EQ(sent_[1].release().assignment_id(), "a");
  EXPECT_EQ(sent_[1].release().lease_epoch(), 4);
  EXPECT_EQ(loop_->held(), 0);
  // The device takes work again as soon as the tracker gives it some.
  Assign(TestAssignment("b"));
  EXPECT_TRUE(Replies().back().accepted());
}

TEST_F(AgentLoopTest, AnAgentThatDrainsToStopSaysWhetherItComesBack) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  Clear();
  loop_->OnDrain("told to stop", absl::Seconds(120));
  Collect();
  EXPECT_THAT(finishing_, ElementsAre("a"));
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[0].device_update().devices(0).health(),
            "draining: told to stop");
  EXPECT_EQ(sent_[1].leaving().returns_within_ms(), 120'000);
  EXPECT_FALSE(loop_->drained());
  loop_->OnResult("a", ResultOf(TestAssignment("a"), 0), true);
  Collect();
  EXPECT_FALSE(loop_->drained()) << "the result is not acknowledged yet";
  v1::TrackerMessage ack;
  v1::TrialAck& one = *ack.mutable_result_ack()->add_acks();
  one.set_trial_id("a/0");
  one.set_attempt(1);
  one.set_status(v1::ACK_STATUS_STORED);
  Receive(ack);
  EXPECT_TRUE(loop_->drained());
  Assign(TestAssignment("b"));
  EXPECT_EQ(Replies().back().reason(), "draining");
}

TEST_F(AgentLoopTest, ShutdownGivesEverythingBackAndCloses) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  Assign(TestAssignment("b"));
  loop_->OnShutdown();
  Collect();
  EXPECT_EQ(Releases().size(), 2u);
  EXPECT_EQ(Releases()[0].reason(), "agent stopping");
  EXPECT_FALSE(Releases()[0].device_fault());
  EXPECT_THAT(stopped_, UnorderedElementsAre("a", "b"));
  EXPECT_EQ(closed_.size(), 1u);
  Clear();
  clock_.Advance(absl::Hours(1));
  Tick();
  EXPECT_EQ(connects_, 0);
}

// ---- heartbeats and leases ----

TEST_F(AgentLoopTest, HeartbeatsComeAtTheTrackersIntervalWithinATenth) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  SteadyTime last = clock_.Steady();
  std::vector<absl::Duration> gaps;
  for (int i = 0; i < 40; ++i) {
    Clear();
    while (Heartbeats().empty()) {
      clock_.Advance(loop_->NextWake() - clock_.Steady());
      Tick();
    }
    EXPECT_THAT(Heartbeats()[0].held_assignment_ids(), ElementsAre("a"));
    EXPECT_EQ(Heartbeats()[0].work_ticks(), ticks_);
    gaps.push_back(clock_.Steady() - last);
    last = clock_.Steady();
    AckHeartbeat({"a"});
  }
  const auto [low, high] = std::minmax_element(gaps.begin(), gaps.end());
  EXPECT_GE(*low, absl::Seconds(9));
  EXPECT_LE(*high, absl::Seconds(11));
  EXPECT_GT(*high - *low, absl::Seconds(1)) << "no jitter";
  EXPECT_THAT(stopped_, IsEmpty());
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(AgentLoopTest, PastFourFifthsOfTheLeaseNothingStarts) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  for (int i = 0; i < 4; ++i) {  // acknowledged, but never renewed
    Pass(absl::Seconds(11));
    AckHeartbeat({});
  }
  Pass(absl::Milliseconds(3'900));
  EXPECT_TRUE(loop_->gate().MayStart("a"));
  EXPECT_THAT(Releases(), IsEmpty());
  Pass(absl::Milliseconds(200));
  EXPECT_FALSE(loop_->gate().MayStart("a"));
  ASSERT_EQ(Releases().size(), 1u);
  EXPECT_THAT(stopped_, IsEmpty()) << "what runs may finish";
  AckHeartbeat({"a"});  // too late: the runner may have been refused a start
  EXPECT_FALSE(loop_->gate().MayStart("a"));
  Pass(absl::Seconds(12));
  EXPECT_THAT(stopped_, ElementsAre("a"));
  EXPECT_EQ(loop_->held(), 0);
}

TEST_F(AgentLoopTest, AResultAfterTheLeaseIsDeliveredAllTheSame) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 3);
  Assign(a);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  Pass(absl::Seconds(50));
  loop_->OnResult("a", ResultOf(a, 0), false);  // was running
  Collect();
  Pass(absl::Seconds(20));
  EXPECT_EQ(loop_->held(), 0);
  Clear();
  ConnectAtOnce();
  EXPECT_THAT(HeldInHello(), IsEmpty());
  EXPECT_EQ(Hellos()[0].spooled_results(), 1);
  Receive(WelcomeMessage());
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
  EXPECT_FALSE(Batches()[0].results(0).last());
}

TEST_F(AgentLoopTest, ABoardThatSleptThroughItsLeaseStartsNothingOnWaking) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  clock_.Advance(absl::Seconds(180));
  // The runner's thread wakes first and asks.
  EXPECT_FALSE(loop_->gate().MayStart("a"));
  // Then an acknowledgement from before is read.
  v1::TrackerMessage message;
  message.mutable_heartbeat_ack()->set_sequence(1);
  message.mutable_heartbeat_ack()->set_lease_ms(60'000);
  message.mutable_heartbeat_ack()->add_renewed("a");
  Receive(message);
  EXPECT_FALSE(loop_->gate().MayStart("a"));
  Tick();
  EXPECT_THAT(stopped_, ElementsAre("a"));
}

TEST_F(AgentLoopTest, WhatTheTrackerAbandonsIsStopped) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  Assign(TestAssignment("b"));
  Pass(absl::Seconds(11));
  AckHeartbeat({"a"}, {"b", "unknown"});
  EXPECT_THAT(stopped_, ElementsAre("b"));
  EXPECT_EQ(loop_->held(), 1);
}

TEST_F(AgentLoopTest, ARepeatedAcknowledgementRenewsNothing) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  Pass(absl::Seconds(11));
  AckHeartbeat({"a"});
  // 40 s on, copies of that one keep coming.
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(absl::Seconds(10));
    v1::TrackerMessage message;
    message.mutable_heartbeat_ack()->set_sequence(1);
    message.mutable_heartbeat_ack()->set_lease_ms(60'000);
    message.mutable_heartbeat_ack()->add_renewed("a");
    Receive(message);
  }
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(loop_->gate().MayStart("a"));
}

TEST_F(AgentLoopTest, ASilentTrackerIsGivenUpAfterThreeHeartbeats) {
  ConnectWelcomed();
  Pass(absl::Seconds(29));
  EXPECT_THAT(closed_, IsEmpty());
  Pass(absl::Seconds(6));
  ASSERT_EQ(closed_.size(), 1u);
  EXPECT_THAT(closed_[0], HasSubstr("silent"));
}

TEST_F(AgentLoopTest, TheSameAssignmentAgainAfterItWasGivenBackStartsAnew) {
  ConnectWelcomed();
  Assign(TestAssignment("a", 1));
  clock_.Advance(absl::Seconds(50));
  Tick();
  ConnectAtOnce();
  Receive(WelcomeMessage());
  Clear();
  Assign(TestAssignment("a", 2));
  EXPECT_THAT(stopped_, ElementsAre("a"));
  EXPECT_THAT(started_, ElementsAre("a"));
  // The end of the first run does not end the second.
  loop_->OnResult("a", ResultOf(TestAssignment("a", 1), 0), true);
  Collect();
  EXPECT_EQ(loop_->held(), 1);
  EXPECT_FALSE(Batches()[0].results(0).last());
  Finish(TestAssignment("a", 2), 0);
  EXPECT_EQ(loop_->held(), 0);
}

// ---- epochs ----

TEST_F(AgentLoopTest, ATrackerOfALowerEpochIsNotObeyed) {
  ConnectAtOnce();
  Receive(WelcomeMessage(7));
  Assign(TestAssignment("a"));
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  ConnectAtOnce();
  Clear();
  Receive(WelcomeMessage(6));
  EXPECT_FALSE(loop_->welcomed());
  ASSERT_EQ(closed_.size(), 1u);
  EXPECT_THAT(closed_[0], HasSubstr("epoch 6"));
  Assign(TestAssignment("b"));
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_THAT(stopped_, IsEmpty()) << "the old leader may not stop work either";
}

TEST_F(AgentLoopTest, ATrackerWhoseStateIsNewIsAcceptedAfterTwoMinutes) {
  ConnectAtOnce();
  Receive(WelcomeMessage(7));
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  const SteadyTime start = clock_.Steady();
  while (!loop_->welcomed() && clock_.Steady() - start < absl::Minutes(5)) {
    ConnectAtOnce();
    Receive(WelcomeMessage(1));
  }
  EXPECT_TRUE(loop_->welcomed());
  EXPECT_GE(clock_.Steady() - start, absl::Minutes(2));
}

}  // namespace
}  // namespace regatta

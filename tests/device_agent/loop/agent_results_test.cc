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

using AgentResultsTest = AgentLoopTest;

TEST_F(AgentResultsTest, AResultIsDurableBeforeItIsSent) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  loop_->OnResult("a", ResultOf(TestAssignment("a"), 0), true);
  const int64_t syncs = disk_.syncs;
  const std::vector<AgentAction> actions = loop_->Settle();
  EXPECT_EQ(disk_.syncs, syncs + 1);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_THAT(disk_.durable, HasSubstr("a/0"));
}

TEST_F(AgentResultsTest, ResultsThatCameTogetherShareOneSync) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 30);
  Assign(a);
  const int64_t syncs = disk_.syncs;
  for (int i = 0; i < 30; ++i) loop_->OnResult("a", ResultOf(a, i), i == 29);
  Collect();
  EXPECT_EQ(disk_.syncs, syncs + 1);
  EXPECT_EQ(SentTrials().size(), 30u);
}

TEST_F(AgentResultsTest,
       WhatShowsThatAnAssignmentIsOursGoesBackWithItsResults) {
  ConnectWelcomed();
  v1::Assignment a = TestAssignment("a", 1, 2);
  a.set_lease_proof("first");
  Assign(a);
  Finish(a, 0);
  EXPECT_EQ(Batches()[0].results(0).lease_proof(), "first");
  // Held on over a reconnect, it is shown with the Hello.
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  Clear();
  ConnectAtOnce();
  EXPECT_EQ(sent_.at(0).hello().held(0).lease_proof(), "first");
  v1::TrackerMessage welcome = WelcomeMessage();
  v1::HeldVerdict* verdict = welcome.mutable_welcome()->add_verdicts();
  verdict->set_assignment_id("a");
  verdict->set_verdict(v1::VERDICT_CONTINUE);
  verdict->set_lease_ms(60'000);
  Receive(welcome);
  // A result that comes after the assignment was dropped has its own still,
  // when the assignment is held again under another lease, too.
  v1::TrackerMessage cancel;
  cancel.mutable_cancel()->add_assignment_ids("a");
  Receive(cancel);
  v1::Assignment again = TestAssignment("a", 2, 2);
  again.set_lease_proof("second");
  Assign(again);
  Clear();
  Finish(a, 1);
  EXPECT_EQ(Batches()[0].results(0).lease_proof(), "first");
  Finish(again, 0);
  EXPECT_EQ(Batches()[1].results(0).lease_proof(), "second");
}

TEST_F(AgentResultsTest, SendsOldestFirstAndForgetsOnlyWhatIsAcknowledged) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 3);
  Assign(a);
  for (int i = 0; i < 3; ++i) Finish(a, i);
  EXPECT_THAT(SentTrials(), ElementsAre("a/0", "a/1", "a/2"));
  EXPECT_EQ(Batches()[2].batch(), 3);
  Ack("a/1", v1::ACK_STATUS_STORED);
  Ack("a/2", v1::ACK_STATUS_UNSPECIFIED);
  EXPECT_EQ(spool_->count(), 2);
  Ack("a/0", v1::ACK_STATUS_DUPLICATE);
  Ack("a/2", v1::ACK_STATUS_REJECTED);
  EXPECT_EQ(spool_->count(), 0);
}

TEST_F(AgentResultsTest, AReconnectSendsEverythingUnacknowledgedAgain) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 3);
  Assign(a);
  for (int i = 0; i < 3; ++i) Finish(a, i);
  Ack("a/0", v1::ACK_STATUS_STORED);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  ConnectAtOnce();
  Clear();
  Receive(WelcomeMessage());
  EXPECT_THAT(SentTrials(), ElementsAre("a/1", "a/2"));
  EXPECT_EQ(Batches()[0].batch(), 1);
}

TEST_F(AgentResultsTest, UnacknowledgedResultsAreSentAgainInTime) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  Finish(TestAssignment("a"), 0);
  Clear();
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(SentTrials(), IsEmpty()) << i;
    Pass(absl::Seconds(7));
    AckHeartbeat({});
  }
  Pass(absl::Seconds(3));
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
}

TEST_F(AgentResultsTest, MessagesAndUnacknowledgedBytesStayUnderAMebibyte) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 1, 64);
  Assign(a);
  for (int i = 0; i < 64; ++i) {
    v1::TrialResult result = ResultOf(a, i);
    result.set_detail(std::string(100'000, 'd'));
    loop_->OnResult("a", result, i == 63);
  }
  Collect();
  const auto total = [this] {
    size_t bytes = 0;
    for (const v1::ResultBatch& batch : Batches()) {
      EXPECT_LE(batch.ByteSizeLong(), 1u << 20);
      bytes += batch.ByteSizeLong();
    }
    return bytes;
  };
  EXPECT_GT(total(), 900'000u);
  EXPECT_LE(total(), 1u << 20);
  // Each acknowledgement makes room; all arrive, in order.
  std::vector<std::string> all = SentTrials();
  for (int i = 0; i < 64; ++i) {
    Clear();
    Ack(absl::StrCat("a/", i), v1::ACK_STATUS_STORED);
    for (const std::string& trial : SentTrials()) all.push_back(trial);
  }
  ASSERT_EQ(all.size(), 64u);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(all[static_cast<size_t>(i)], absl::StrCat("a/", i));
  }
}

TEST_F(AgentResultsTest, AResultTooLongForAMessageBecomesADeviceFault) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  v1::TrialResult result = ResultOf(TestAssignment("a"), 0);
  for (int i = 0; i < 300'000; ++i) {
    result.add_blocks()->set_elapsed_ns(1'000'000);
  }
  loop_->OnResult("a", result, true);
  Collect();
  ASSERT_EQ(Batches().size(), 1u);
  const v1::TrialResult sent = Batches()[0].results(0).result();
  EXPECT_EQ(sent.outcome(), v1::OUTCOME_DEVICE_FAULT);
  EXPECT_THAT(sent.detail(), HasSubstr("longer than a message"));
  EXPECT_LE(sent.ByteSizeLong(), 1u << 20);
}

TEST_F(AgentResultsTest, AfterARestartSpooledResultsAreAnnouncedAndDelivered) {
  ConnectWelcomed();
  const v1::Assignment a = TestAssignment("a", 4, 1);
  const v1::Assignment b = TestAssignment("b", 5, 2);
  Assign(a);
  Assign(b);
  Finish(a, 0);
  Finish(b, 0);  // b's second trial is running when the agent is killed
  Restart();
  Clear();
  ConnectAtOnce();
  EXPECT_EQ(Hellos()[0].spooled_results(), 2);
  // "a" only waits for its delivery; "b" cannot go on.
  EXPECT_THAT(HeldInHello(), ElementsAre("a"));
  EXPECT_EQ(Hellos()[0].held(0).lease_epoch(), 4);
  Receive(WelcomeMessage());
  EXPECT_THAT(SentTrials(), ElementsAre("a/0", "b/0"));
  EXPECT_THAT(stopped_, IsEmpty());
}

TEST_F(AgentResultsTest, AFullDiskSendsFromMemoryAndRefusesNewWork) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  disk_.broken = true;
  Finish(TestAssignment("a"), 0);
  EXPECT_THAT(SentTrials(), ElementsAre("a/0"));
  Assign(TestAssignment("b"));
  EXPECT_THAT(Replies().back().reason(), HasSubstr("cannot be written"));
  disk_.broken = false;
  Tick();
  Assign(TestAssignment("c"));
  EXPECT_TRUE(Replies().back().accepted());
}

// Once the results in memory are delivered nothing is left to write: only
// trying the disk can tell that there is room again.
TEST_F(AgentResultsTest, AfterAFullDiskWorkIsTakenAgainWithoutARestart) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  // Room for a Forget, as on the last block of a full disk; none for a result.
  disk_.capacity = static_cast<int64_t>(disk_.content.size()) + 40;
  Finish(TestAssignment("a"), 0);
  Ack("a/0", v1::ACK_STATUS_STORED);
  EXPECT_EQ(spool_->count(), 0);
  const auto health = [this] {
    const auto updates = Sent(&v1::AgentMessage::has_device_update,
                              &v1::AgentMessage::device_update);
    return updates.empty() ? "none sent" : updates.back().devices(0).health();
  };
  EXPECT_EQ(health(),
            "draining: the result spool cannot be written: the fake disk is "
            "full");
  for (int i = 0; i < 3; ++i) {
    Pass(absl::Seconds(7));
    AckHeartbeat({});
    Assign(TestAssignment("b"));
    EXPECT_THAT(Replies().back().reason(), HasSubstr("cannot be written"));
  }
  // A tracker that comes anew is told, too, whatever the probes say meanwhile.
  v1::DeviceInfo device = TestHello().devices(0);
  device.set_health("ok");
  loop_->OnDevices({device});
  Collect();
  EXPECT_THAT(health(), HasSubstr("draining: "));
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  ConnectWelcomed();
  EXPECT_THAT(Hellos().back().devices(0).health(), HasSubstr("draining: "));
  disk_.capacity = -1;
  Clear();
  Pass(absl::Seconds(6));
  EXPECT_EQ(health(), "ok");
  Assign(TestAssignment("c"));
  EXPECT_TRUE(Replies().back().accepted());
  // The probe left nothing behind.
  EXPECT_LT(disk_.content.size(), 1000u);
}

// The Hello is on its way and says what is true no more.
TEST_F(AgentResultsTest, DevicesThatChangeBeforeTheWelcomeAreSentAfterIt) {
  v1::DeviceInfo device = TestHello().devices(0);
  device.set_health("probing");
  loop_->OnDevices({device});
  ConnectAtOnce();
  ASSERT_EQ(Hellos().back().devices(0).health(), "probing");
  device.set_health("ok");
  loop_->OnDevices({device});
  Collect();
  ASSERT_EQ(sent_.size(), 1u) << "nothing counts before the Welcome";
  Clear();
  Receive(WelcomeMessage());
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].device_update().devices(0).health(), "ok");

  // And nothing when it is shown already, here or in the next Hello.
  loop_->OnDevices({device});
  Collect();
  EXPECT_EQ(sent_.size(), 1u);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  Clear();
  ConnectWelcomed();
  EXPECT_EQ(Hellos().size(), 1u);
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(AgentResultsTest, ASpoolWrittenAgainBeforeTheWelcomeIsToldAfterIt) {
  ConnectWelcomed();
  Assign(TestAssignment("a"));
  disk_.capacity = 10;
  Finish(TestAssignment("a"), 0);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  ConnectAtOnce();
  ASSERT_THAT(Hellos().back().devices(0).health(), HasSubstr("draining: "));
  disk_.capacity = -1;
  Collect();
  Clear();
  Receive(WelcomeMessage());
  ASSERT_FALSE(sent_.empty());
  ASSERT_TRUE(sent_[0].has_device_update());
  EXPECT_EQ(sent_[0].device_update().devices(0).health(),
            TestHello().devices(0).health());
}

TEST_F(AgentResultsTest, ADeviceUpdateIsSentNowAndInLaterHellos) {
  ConnectWelcomed();
  v1::DeviceInfo device = TestHello().devices(0);
  device.set_health("ok");
  device.set_l1_bytes(32768);
  Clear();
  loop_->OnDevices({device});
  Collect();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].device_update().devices(0).l1_bytes(), 32768);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  ConnectAtOnce();
  EXPECT_EQ(Hellos()[0].devices(0).health(), "ok");
}

}  // namespace
}  // namespace regatta

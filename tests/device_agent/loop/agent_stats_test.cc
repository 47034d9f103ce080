// What an agent counts of its conversation and of its trials.
#include "device_agent/loop/agent_stats.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace regatta {
namespace {

// The value of a sample, its labels by their values alone.
std::optional<double> Get(const AgentStats& stats, const std::string& name,
                          const std::vector<std::string>& labels = {}) {
  MetricsPage page;
  stats.Collect(page);
  for (const MetricFamily& family : page.families()) {
    if (family.name != name) continue;
    for (const MetricSample& sample : family.samples) {
      std::vector<std::string> values;
      for (const auto& [label, value] : sample.labels) values.push_back(value);
      if (values != labels) continue;
      return family.kind == MetricKind::kHistogram
                 ? static_cast<double>(sample.histogram.Count())
                 : sample.value;
    }
  }
  return std::nullopt;
}

HistogramSnapshot Histogram(const AgentStats& stats, const std::string& name) {
  MetricsPage page;
  stats.Collect(page);
  for (const MetricFamily& family : page.families()) {
    if (family.name == name) return family.samples[0].histogram;
  }
  return {};
}

class FakeConnection : public TrackerConnection {
 public:
  void Open(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void Send(v1::AgentMessage message) override { sent.push_back(message); }
  void Close(absl::Duration linger) override { lingers.push_back(linger); }

  Callbacks callbacks_;
  std::vector<v1::AgentMessage> sent;
  std::vector<absl::Duration> lingers;
};

v1::AgentMessage Heartbeat(int64_t sequence) {
  v1::AgentMessage message;
  message.mutable_heartbeat()->set_sequence(sequence);
  return message;
}

v1::TrackerMessage Answer(int64_t sequence) {
  v1::TrackerMessage message;
  message.mutable_heartbeat_ack()->set_sequence(sequence);
  return message;
}

class AgentStatsTest : public ::testing::Test {
 protected:
  void Open() {
    metered_.Open({[this](v1::TrackerMessage message) {
                     received_.push_back(std::move(message));
                   },
                   [this](absl::Status why) { closed_.push_back(why); }});
  }

  FakeClock clock_;
  AgentStats stats_{&clock_};
  FakeConnection inner_;
  MeteredConnection metered_{&inner_, &stats_};
  std::vector<v1::TrackerMessage> received_;
  std::vector<absl::Status> closed_;
};

TEST_F(AgentStatsTest, HeartbeatsAreTimedFromSendingToTheirAnswer) {
  Open();
  metered_.Send(Heartbeat(1));
  clock_.Advance(absl::Milliseconds(20));
  metered_.Send(Heartbeat(2));
  clock_.Advance(absl::Milliseconds(30));
  inner_.callbacks_.on_message(Answer(1));  // 50 ms
  clock_.Advance(absl::Milliseconds(450));
  inner_.callbacks_.on_message(Answer(2));  // 480 ms
  inner_.callbacks_.on_message(Answer(2));  // again
  inner_.callbacks_.on_message(Answer(99));
  const HistogramSnapshot taken =
      Histogram(stats_, "regatta_agent_heartbeat_seconds");
  EXPECT_EQ(taken.Count(), 2u);
  EXPECT_NEAR(taken.sum, 0.53, 1e-9);
  // Everything passed on, unchanged and in order.
  EXPECT_EQ(inner_.sent.size(), 2u);
  EXPECT_EQ(received_.size(), 4u);
}

TEST_F(AgentStatsTest, WhatALostConnectionDoesNotAnswerIsNotTimed) {
  Open();
  metered_.Send(Heartbeat(1));
  inner_.callbacks_.on_closed(absl::UnavailableError("cut"));
  EXPECT_EQ(closed_.size(), 1u);
  clock_.Advance(absl::Minutes(5));
  Open();
  inner_.callbacks_.on_message(Answer(1));
  EXPECT_EQ(Get(stats_, "regatta_agent_heartbeat_seconds"), 0);
  EXPECT_EQ(Get(stats_, "regatta_agent_connections_total"), 2);
}

TEST_F(AgentStatsTest, ConnectedMeansWelcomed) {
  EXPECT_EQ(Get(stats_, "regatta_agent_tracker_connected"), 0);
  Open();
  EXPECT_EQ(Get(stats_, "regatta_agent_tracker_connected"), 0);
  v1::TrackerMessage welcome;
  welcome.mutable_welcome();
  inner_.callbacks_.on_message(welcome);
  EXPECT_EQ(Get(stats_, "regatta_agent_tracker_connected"), 1);
  metered_.Close(absl::Seconds(1));
  EXPECT_EQ(Get(stats_, "regatta_agent_tracker_connected"), 0);
  EXPECT_EQ(inner_.lingers, std::vector<absl::Duration>{absl::Seconds(1)});
}

TEST_F(AgentStatsTest, AssignmentsAndAcksAreCounted) {
  Open();
  v1::TrackerMessage assign;
  assign.mutable_assign();
  for (int i = 0; i < 3; ++i) inner_.callbacks_.on_message(assign);
  v1::AgentMessage reply;
  reply.mutable_assignment_reply()->set_accepted(true);
  metered_.Send(reply);
  reply.mutable_assignment_reply()->set_accepted(false);
  metered_.Send(reply);
  v1::AgentMessage release;
  release.mutable_release();
  metered_.Send(release);
  v1::TrackerMessage acks;
  for (const v1::AckStatus status :
       {v1::ACK_STATUS_STORED, v1::ACK_STATUS_STORED,
        v1::ACK_STATUS_REJECTED}) {
    acks.mutable_result_ack()->add_acks()->set_status(status);
  }
  inner_.callbacks_.on_message(acks);
  EXPECT_EQ(Get(stats_, "regatta_agent_assignments_total"), 3);
  EXPECT_EQ(Get(stats_, "regatta_agent_assignments_refused_total"), 1);
  EXPECT_EQ(Get(stats_, "regatta_agent_assignments_released_total"), 1);
  EXPECT_EQ(Get(stats_, "regatta_agent_result_acks_total", {"stored"}), 2);
  EXPECT_EQ(Get(stats_, "regatta_agent_result_acks_total", {"duplicate"}), 0);
  EXPECT_EQ(Get(stats_, "regatta_agent_result_acks_total", {"rejected"}), 1);
}

TEST_F(AgentStatsTest, TrialsAreCountedByOutcomeAndTimedByDevice) {
  std::vector<std::string> passed;
  const auto sink = stats_.Count(
      [&](const std::string& id, v1::TrialResult result, bool last) {
        passed.push_back(id + (last ? "!" : "") + result.device_id());
      });
  v1::TrialResult ok;
  ok.set_outcome(v1::OUTCOME_OK);
  ok.set_device_id("b1");
  ok.mutable_phases()->set_build_ns(2'000'000'000);
  ok.mutable_phases()->set_wait_ns(500'000'000);
  ok.mutable_phases()->set_verify_ns(1'000'000'000);
  ok.mutable_phases()->set_time_ns(3'000'000'000);
  sink("w1", ok, false);
  clock_.Advance(absl::Seconds(10));
  sink("w1", ok, true);
  v1::TrialResult broken;  // never ran
  broken.set_outcome(v1::OUTCOME_COMPILE_ERROR);
  broken.set_device_id("b2");
  broken.mutable_phases()->set_build_ns(1'000'000'000);
  sink("w2", broken, true);
  clock_.Advance(absl::Seconds(7));

  EXPECT_EQ(passed, (std::vector<std::string>{"w1b1", "w1!b1", "w2!b2"}));
  EXPECT_EQ(Get(stats_, "regatta_agent_trials_total", {"ok"}), 2);
  EXPECT_EQ(Get(stats_, "regatta_agent_trials_total", {"compile_error"}), 1);
  EXPECT_EQ(Get(stats_, "regatta_agent_trials_total", {"crashed"}), 0);
  EXPECT_NEAR(Histogram(stats_, "regatta_agent_build_seconds").sum, 5, 1e-9);
  EXPECT_EQ(Get(stats_, "regatta_agent_build_seconds"), 3);
  EXPECT_NEAR(Histogram(stats_, "regatta_agent_wait_seconds").sum, 1, 1e-9);
  EXPECT_EQ(Get(stats_, "regatta_agent_wait_seconds"), 2);
  EXPECT_EQ(Get(stats_, "regatta_agent_device_held_seconds_total", {"b1"}), 8);
  EXPECT_EQ(Get(stats_, "regatta_agent_device_held_seconds_total", {"b2"}), 0);
  EXPECT_EQ(Get(stats_, "regatta_agent_device_idle_seconds", {"b1"}), 7);
}

}  // namespace
}  // namespace regatta

#include "device_agent/loop/agent_stats.h"

#include <iterator>

#include "proto/outcome_metrics.h"

namespace regatta {
namespace {

// Heartbeats that a lost connection never answers are forgotten with it; a
// tracker that answers none of so many is given up long before.
constexpr size_t kMaxUnanswered = 64;

}  // namespace

TrialRunner::ResultCallback AgentStats::Count(
    TrialRunner::ResultCallback next) {
  return [this, next = std::move(next)](const std::string& assignment_id,
                                        v1::TrialResult result, bool last) {
    CountResult(result);
    next(assignment_id, std::move(result), last);
  };
}

void AgentStats::CountResult(const v1::TrialResult& result) {
  const v1::PhaseTimes& phases = result.phases();
  if (phases.build_ns() > 0) {
    build_.Observe(absl::Nanoseconds(phases.build_ns()));
  }
  const bool ran = phases.verify_ns() > 0 || phases.time_ns() > 0;
  if (ran) wait_.Observe(absl::Nanoseconds(phases.wait_ns()));
  std::lock_guard lock(mutex_);
  // Canaries prove the board; nobody asked for them.
  if (result.spec().kind() != v1::TRIAL_KIND_CANARY) {
    ++outcomes_[result.outcome()];
  }
  Device& device = devices_[result.device_id()];
  device.held += absl::Nanoseconds(phases.verify_ns() + phases.time_ns());
  device.last_result = clock_->Steady();
}

void AgentStats::AddDevice(const std::string& id) {
  std::lock_guard lock(mutex_);
  devices_.try_emplace(id).first->second.last_result = clock_->Steady();
}

void AgentStats::Opened() {
  std::lock_guard lock(mutex_);
  ++connections_;
  welcomed_ = false;
  heartbeats_.clear();
}

void AgentStats::Closed() {
  std::lock_guard lock(mutex_);
  welcomed_ = false;
  heartbeats_.clear();
}

void AgentStats::Sent(const v1::AgentMessage& message) {
  std::lock_guard lock(mutex_);
  if (message.has_heartbeat()) {
    heartbeats_[message.heartbeat().sequence()] = clock_->Steady();
    if (heartbeats_.size() > kMaxUnanswered) {
      heartbeats_.erase(heartbeats_.begin());
    }
  } else if (message.has_assignment_reply()) {
    if (!message.assignment_reply().accepted()) ++refused_;
  } else if (message.has_release()) {
    ++released_;
  }
}

void AgentStats::Received(const v1::TrackerMessage& message) {
  const SteadyTime now = clock_->Steady();
  std::lock_guard lock(mutex_);
  if (message.has_welcome()) {
    welcomed_ = true;
  } else if (message.has_heartbeat_ack()) {
    const auto sent = heartbeats_.find(message.heartbeat_ack().sequence());
    if (sent == heartbeats_.end()) return;
    heartbeat_.Observe(now - sent->second);
    heartbeats_.erase(heartbeats_.begin(), std::next(sent));
  } else if (message.has_assign()) {
    ++assigned_;
  } else if (message.has_result_ack()) {
    for (const v1::TrialAck& ack : message.result_ack().acks()) {
      ++acks_[ack.status()];
    }
  }
}

void AgentStats::Collect(MetricsPage& page) const {
  page.Histogram("regatta_agent_heartbeat_seconds",
                 "Time from a heartbeat to the tracker's answer",
                 heartbeat_.Snapshot());
  page.Histogram("regatta_agent_build_seconds",
                 "Time to build a trial's module", build_.Snapshot());
  page.Histogram("regatta_agent_wait_seconds",
                 "Time that a built trial waited for its device",
                 wait_.Snapshot());
  std::lock_guard lock(mutex_);
  page.Gauge("regatta_agent_tracker_connected",
             "Whether the tracker has welcomed this agent: 1 or 0",
             welcomed_ ? 1 : 0);
  page.Counter("regatta_agent_connections_total",
               "Connections to the tracker that were begun",
               static_cast<double>(connections_));
  page.Counter("regatta_agent_assignments_total",
               "Assignments that the tracker sent",
               static_cast<double>(assigned_));
  page.Counter("regatta_agent_assignments_refused_total",
               "Assignments that were not accepted",
               static_cast<double>(refused_));
  page.Counter("regatta_agent_assignments_released_total",
               "Assignments that were given back before their end",
               static_cast<double>(released_));
  AddOutcomes("regatta_agent_trials_total",
              "Trials that ended on this board, by outcome", outcomes_, page);
  AddVerdicts("regatta_agent_result_acks_total",
              "Acknowledged results, by what was answered", acks_, page);
  const SteadyTime now = clock_->Steady();
  for (const auto& [id, device] : devices_) {
    page.Counter("regatta_agent_device_held_seconds_total",
                 "Time for which trials verified and timed on a device",
                 absl::ToDoubleSeconds(device.held), {{"device", id}});
    page.Gauge("regatta_agent_device_idle_seconds",
               "Time since the last trial ended on a device",
               absl::ToDoubleSeconds(now - device.last_result),
               {{"device", id}});
  }
}

void MeteredConnection::Open(Callbacks callbacks) {
  stats_->Opened();
  Callbacks metered;
  metered.on_message = [stats = stats_, next = std::move(callbacks.on_message)](
                           v1::TrackerMessage message) {
    stats->Received(message);
    next(std::move(message));
  };
  metered.on_closed = [stats = stats_, next = std::move(callbacks.on_closed)](
                          absl::Status why) {
    stats->Closed();
    next(std::move(why));
  };
  inner_->Open(std::move(metered));
}

void MeteredConnection::Send(v1::AgentMessage message) {
  stats_->Sent(message);
  inner_->Send(std::move(message));
}

void MeteredConnection::Close(absl::Duration linger) {
  inner_->Close(linger);
  stats_->Closed();
}

}  // namespace regatta

// AgentLoop's clockwork: heartbeats, and silence while runs are timed.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/agent_loop.h"

namespace regatta {
namespace {

// Of a lease: how long before it would be curtailed silence ends.
constexpr double kRenewAhead = 0.2;

}  // namespace

void AgentLoop::OnTick(int64_t work_ticks) {
  const SteadyTime now = clock_->Steady();
  work_ticks_ = work_ticks;
  if (state_ == State::kStopped) return;
  CheckLeases(now);
  if (state_ == State::kWaiting) {
    if (now >= connect_at_) Connect();
    return;
  }
  if (now >= SilenceEnds()) {
    return Disconnect(
        absl::StrCat("the tracker was silent for ",
                     absl::FormatDuration(absl::Trunc(
                         now - last_received_, absl::Milliseconds(100)))));
  }
  if (state_ != State::kWelcomed) return;
  if (now >= HeartbeatDue()) SendHeartbeat();
  if (devices_wait_) SendDevices();
  if (!in_flight_.empty() &&
      now >= last_result_progress_ + options_.resend_after) {
    ResetSending();
  }
}

SteadyTime AgentLoop::SilenceEnds() const {
  if (state_ != State::kWelcomed) {
    return last_received_ + options_.welcome_timeout;
  }
  SteadyTime heard = std::max(last_received_, agreed_silence_ended_);
  if (SilenceAgreed()) heard = std::max(heard, silence_until_);
  return heard + std::max(heartbeat_ * 3.3, absl::Seconds(3));
}

void AgentLoop::OnWindow(const std::string& device_id, absl::Duration longest) {
  const SteadyTime now = clock_->Steady();
  const bool was_quiet = Quiet(now);
  quiet_.Set(device_id, now, longest);
  if (was_quiet == Quiet(now)) return;
  if (was_quiet) {
    EndSilence(now);
    SendDevices();
    return;
  }
  // Runs are short and many: half an interval after a heartbeat the next one is
  // far enough away.
  if (state_ == State::kWelcomed && next_heartbeat_ <= quiet_.until() &&
      now - heartbeat_sent_ >= heartbeat_ / 2) {
    SendHeartbeat();
  }
}

void AgentLoop::EndSilence(SteadyTime now) {
  if (SilenceAgreed()) agreed_silence_ended_ = std::min(now, silence_until_);
  announced_ = 0;
}

bool AgentLoop::Quiet(SteadyTime now) const {
  return leaving_.empty() && quiet_.Active(now);
}

SteadyTime AgentLoop::HeartbeatDue() const {
  if (announced_ == 0 || !Quiet(clock_->Steady())) return next_heartbeat_;
  SteadyTime latest = quiet_.until();
  for (const auto& [id, held] : held_) {
    if (held.curtailed) continue;
    // In time to be renewed, and not at once again.
    latest = std::min(latest, std::max(held.curtail_at + lease_ * -kRenewAhead,
                                       heartbeat_sent_ + heartbeat_));
  }
  return std::max(next_heartbeat_, latest);
}

SteadyTime AgentLoop::NextWake() const {
  SteadyTime next{std::numeric_limits<int64_t>::max()};
  if (state_ == State::kStopped) return next;
  for (const auto& [id, held] : held_) {
    next = std::min(next, held.curtailed ? held.expires_at : held.curtail_at);
  }
  if (!spool_trouble_.empty()) next = std::min(next, probe_spool_at_);
  if (state_ == State::kWaiting) return std::min(next, connect_at_);
  next = std::min(next, SilenceEnds());
  if (state_ != State::kWelcomed) return next;
  next = std::min(next, HeartbeatDue());
  // What waits for the silence to end.
  if (Quiet(clock_->Steady())) next = std::min(next, quiet_.until());
  if (!in_flight_.empty()) {
    next = std::min(next, last_result_progress_ + options_.resend_after);
  }
  return next;
}

void AgentLoop::ScheduleHeartbeat() {
  next_heartbeat_ =
      clock_->Steady() + heartbeat_ * (0.9 + 0.2 * random_.Unit());
}

void AgentLoop::SendHeartbeat() {
  v1::AgentMessage message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat.set_sequence(++heartbeat_sequence_);
  heartbeat.set_work_ticks(work_ticks_);
  heartbeat.set_spooled_results(spool_->count());
  for (const auto& [id, held] : held_) {
    if (!held.curtailed) heartbeat.add_held_assignment_ids(id);
  }
  const SteadyTime now = clock_->Steady();
  const bool quiet = Quiet(now);
  if (quiet) {
    heartbeat.set_quiet_ms(absl::ToInt64Milliseconds(
        absl::Ceil(quiet_.until() - now, absl::Milliseconds(1))));
  }
  Send(std::move(message));
  if (quiet) {
    announced_ = heartbeat_sequence_;
    silence_until_ = quiet_.until();
  }
  heartbeat_sent_ = now;
  ScheduleHeartbeat();
}

void AgentLoop::OnHeartbeatAck(const v1::HeartbeatAck& ack) {
  // Repeated or overtaken acknowledgements say nothing about now.
  if (ack.sequence() <= acked_sequence_ ||
      ack.sequence() > heartbeat_sequence_) {
    return;
  }
  acked_sequence_ = ack.sequence();
  if (ack.builders_change() != session_.builders_change) {
    ShowSession({true, session_.relays_builds, ack.builders_change()});
  }
  for (const std::string& id : ack.renewed()) {
    if (const auto it = held_.find(id); it != held_.end()) {
      Renew(id, it->second, ack.lease_ms());
    }
  }
  for (const std::string& id : ack.abandoned()) {
    if (held_.contains(id)) Drop(id);
  }
}

}  // namespace regatta

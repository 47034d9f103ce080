#include "device_agent/loop/agent_loop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "google/protobuf/util/message_differencer.h"

namespace regatta {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr double kCurtailAt = 0.8;  // of a lease
constexpr size_t kMaxFinishedInHello = 1024;
constexpr absl::Duration kLowerEpochPatience = absl::Minutes(2);
// A session that lived this long ends a row of failures.
constexpr absl::Duration kGoodSession = absl::Seconds(5);

absl::Duration Clamp(int64_t ms, absl::Duration low, absl::Duration high) {
  return std::clamp(absl::Milliseconds(ms), low, high);
}

// Retrying at once cannot help: someone has to change something.
bool NeedsAPerson(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
}

bool IsPowerOfTwo(int n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

AgentLoop::AgentLoop(Options options, const Clock* clock, Random random,
                     Spool* spool)
    : options_(std::move(options)),
      clock_(clock),
      spool_(spool),
      reconnect_(Random(random.Next())),
      random_(random),
      gate_(clock),
      hello_(options_.hello),
      connect_at_(clock->Steady()),
      lease_(options_.default_lease) {}

// ---- connection ----

void AgentLoop::Connect() {
  state_ = State::kConnecting;
  last_received_ = clock_->Steady();
  actions_.push_back(ConnectAction{});
}

void AgentLoop::OnConnected() {
  if (state_ != State::kConnecting) return;
  state_ = State::kGreeting;
  SendHello();
}

void AgentLoop::OnDisconnected(const absl::Status& why) {
  if (state_ == State::kWaiting || state_ == State::kStopped) return;
  const SteadyTime now = clock_->Steady();
  const bool was_welcomed = state_ == State::kWelcomed;
  if (was_welcomed) {
    if (now - welcomed_at_ >= kGoodSession) {
      reconnect_.Succeeded();
    } else {
      reconnect_.SucceededBriefly();
    }
  }
  state_ = State::kWaiting;
  if (was_welcomed) ShowSession({});
  absl::Duration delay = reconnect_.Failed();
  if (absl::IsAborted(why)) {
    LOG(kError) << "another agent took over the name " << hello_.agent_id()
                << "; give each agent its own --id";
  }
  if (NeedsAPerson(why)) {
    delay = reconnect_.Between(absl::Seconds(15), absl::Seconds(30));
  }
  connect_at_ = now + delay;
  if (was_welcomed || IsPowerOfTwo(reconnect_.failures())) {
    LOG(kWarning) << LogEvent("tracker_lost")
                  << LogReason(std::string(why.message()))
                  << (was_welcomed ? "lost the tracker" : "no tracker")
                  << " (try " << reconnect_.failures() << "): " << why.message()
                  << "; next try in "
                  << absl::FormatDuration(
                         absl::Trunc(delay, absl::Milliseconds(1)));
  }
}

void AgentLoop::Disconnect(const std::string& reason) {
  actions_.push_back(CloseAction{reason});
  OnDisconnected(absl::UnavailableError(reason));
}

void AgentLoop::Send(v1::AgentMessage message) {
  // Whatever is said takes back what was said of silence.
  EndSilence(clock_->Steady());
  actions_.push_back(SendAction{std::move(message)});
}

void AgentLoop::SendHello() {
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello = hello_;
  shown_ = ShownDevices();
  *hello.mutable_devices() = shown_.devices();
  hello.set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
  hello.set_unix_ms(absl::ToUnixMillis(clock_->Wall()));
  for (const auto& [id, held] : held_) {
    if (held.curtailed) continue;
    v1::HeldAssignment& out = *hello.add_held();
    out.set_assignment_id(id);
    out.set_attempt(held.attempt);
    out.set_lease_epoch(held.lease_epoch);
    out.set_lease_proof(held.lease_proof);
    out.set_started(held.started);
    out.set_device_id(held.device_id);
  }
  // Listed too, so that the tracker does not hand out again what is about to
  // arrive.
  for (v1::HeldAssignment& finished : spool_->Finished(kMaxFinishedInHello)) {
    if (!held_.contains(finished.assignment_id())) {
      *hello.add_held() = std::move(finished);
    }
  }
  hello.set_spooled_results(spool_->count());
  Send(std::move(message));
}

void AgentLoop::OnMessage(const v1::TrackerMessage& message) {
  if (state_ != State::kGreeting && state_ != State::kWelcomed) return;
  last_received_ = clock_->Steady();
  if (message.message_case() == v1::TrackerMessage::kGoodbye) {
    return OnGoodbye(message.goodbye());
  }
  if (message.has_welcome() == (state_ == State::kWelcomed)) {
    // Nothing counts before the Welcome, and there is one per session.
    LOG(kWarning) << "ignored a message out of turn from the tracker";
    return;
  }
  switch (message.message_case()) {
    case v1::TrackerMessage::kWelcome:
      return OnWelcome(message.welcome());
    case v1::TrackerMessage::kAssign:
      return OnAssign(message.assign().assignment());
    case v1::TrackerMessage::kHeartbeatAck:
      return OnHeartbeatAck(message.heartbeat_ack());
    case v1::TrackerMessage::kResultAck:
      return OnResultAck(message.result_ack());
    case v1::TrackerMessage::kCancel:
      return OnCancel(message.cancel());
    case v1::TrackerMessage::kDrain:
      return OnDrainMessage(message.drain());
    case v1::TrackerMessage::kBuildOrder:
    case v1::TrackerMessage::kBuildAnswer:
    case v1::TrackerMessage::kBlobAsk:
    case v1::TrackerMessage::kBlobChunk:
    case v1::TrackerMessage::kBuildEnd:
      actions_.push_back(BuildAction{message});
      return;
    case v1::TrackerMessage::kGoodbye:
    case v1::TrackerMessage::MESSAGE_NOT_SET:
      return;  // from a newer tracker: nothing that this agent knows
  }
}

bool AgentLoop::AcceptsEpoch(int64_t epoch) {
  const SteadyTime now = clock_->Steady();
  if (epoch < highest_epoch_) {
    if (!only_lower_since_.has_value()) only_lower_since_ = now;
    if (now - *only_lower_since_ < kLowerEpochPatience) return false;
    LOG(kWarning) << "accepting tracker epoch " << epoch << " after "
                  << highest_epoch_
                  << ": no other tracker answers, its state must be new";
  }
  highest_epoch_ = epoch;
  only_lower_since_.reset();
  return true;
}

void AgentLoop::OnWelcome(const v1::Welcome& welcome) {
  if (!AcceptsEpoch(welcome.tracker_epoch())) {
    return Disconnect(absl::StrCat("tracker epoch ", welcome.tracker_epoch(),
                                   " is older than ", highest_epoch_,
                                   " seen before: not the leader any more"));
  }
  const SteadyTime now = clock_->Steady();
  state_ = State::kWelcomed;
  welcomed_at_ = now;
  draining_ = !leaving_.empty();
  late_releases_.clear();
  heartbeat_ =
      Clamp(welcome.heartbeat_ms(), absl::Milliseconds(50), absl::Minutes(1));
  if (welcome.lease_ms() > 0) {
    lease_ = Clamp(welcome.lease_ms(), absl::Milliseconds(100), absl::Hours(1));
  }
  batch_ = 0;
  ResetSending();
  ScheduleHeartbeat();
  std::set<std::string> answered;
  for (const v1::HeldVerdict& verdict : welcome.verdicts()) {
    answered.insert(verdict.assignment_id());
    const auto it = held_.find(verdict.assignment_id());
    if (verdict.verdict() != v1::VERDICT_CONTINUE) {
      if (it != held_.end()) Drop(verdict.assignment_id());
    } else if (it == held_.end() || it->second.curtailed) {
      // Held when the Hello was sent, but not any more; unless its last result
      // says so, nothing else does.
      if (!spool_->Ends(verdict.assignment_id())) {
        ReleaseLate(verdict.assignment_id(), verdict.lease_epoch(),
                    "ended during the handshake");
      }
    } else {
      if (verdict.lease_epoch() > 0) {
        it->second.lease_epoch = verdict.lease_epoch();
      }
      Renew(it->first, it->second, verdict.lease_ms());
    }
  }
  // Held, yet without a verdict: the tracker will hand it to somebody else.
  std::vector<std::string> unanswered;
  for (const auto& [id, held] : held_) {
    if (!held.curtailed && !answered.contains(id)) unanswered.push_back(id);
  }
  for (const std::string& id : unanswered) Drop(id);
  // They may have changed since the Hello.
  SendDevices();
  ShowSession({true, welcome.relays_builds(), 0});
  LOG(kInfo) << LogEvent("session_welcomed") << LogSession(welcome.session_id())
             << "welcomed by the tracker: session " << welcome.session_id()
             << ", epoch " << welcome.tracker_epoch() << ", holding "
             << held_.size() << " assignments and " << spool_->count()
             << " results to deliver";
}

void AgentLoop::OnGoodbye(const v1::Goodbye& goodbye) {
  Disconnect("the tracker said goodbye");
  const absl::Duration wait = Clamp(goodbye.reconnect_after_ms(),
                                    absl::Milliseconds(100), absl::Minutes(5));
  connect_at_ = clock_->Steady() + reconnect_.Between(wait, wait * 1.1);
}

void AgentLoop::ShowSession(const SessionState& state) {
  session_ = state;
  actions_.push_back(SessionAction{state});
}

void AgentLoop::OnBuildMessage(v1::AgentMessage message) {
  if (state_ == State::kWelcomed && session_.relays_builds) {
    Send(std::move(message));
  }
}

// ---- devices and shutdown ----

void AgentLoop::OnDevices(std::vector<v1::DeviceInfo> devices) {
  hello_.set_devices_follow(false);
  hello_.clear_devices();
  for (v1::DeviceInfo& device : devices) {
    *hello_.add_devices() = std::move(device);
  }
  SendDevices();
}

v1::DeviceUpdate AgentLoop::ShownDevices() const {
  v1::DeviceUpdate update;
  *update.mutable_devices() = hello_.devices();
  std::string trouble = leaving_;
  if (trouble.empty() && !spool_trouble_.empty()) {
    trouble =
        absl::StrCat("the result spool cannot be written: ", spool_trouble_);
  }
  if (trouble.empty()) return update;
  for (v1::DeviceInfo& device : *update.mutable_devices()) {
    device.set_health(absl::StrCat("draining: ", trouble));
  }
  return update;
}

void AgentLoop::SendDevices() {
  if (state_ != State::kWelcomed) return;
  devices_wait_ = Quiet(clock_->Steady());
  if (devices_wait_) return;
  v1::DeviceUpdate update = ShownDevices();
  if (MessageDifferencer::Equals(update, shown_)) return;
  shown_ = update;
  v1::AgentMessage message;
  *message.mutable_device_update() = std::move(update);
  Send(std::move(message));
}

void AgentLoop::OnDrain(const std::string& reason,
                        absl::Duration returns_within) {
  leaving_ = reason;
  draining_ = true;
  for (auto& [id, held] : held_) FinishHeld(id, held);
  SendDevices();
  if (state_ != State::kWelcomed || returns_within <= absl::ZeroDuration()) {
    return;
  }
  v1::AgentMessage message;
  message.mutable_leaving()->set_reason(reason);
  message.mutable_leaving()->set_returns_within_ms(
      absl::ToInt64Milliseconds(returns_within));
  Send(std::move(message));
}

void AgentLoop::OnDrainMessage(const v1::Drain& drain) {
  LOG(kInfo) << "draining: " << drain.reason();
  if (drain.device_ids().empty()) {
    draining_ = true;
    return;
  }
  for (auto& [id, held] : held_) {
    const auto& ids = drain.device_ids();
    if (std::find(ids.begin(), ids.end(), held.device_id) != ids.end()) {
      FinishHeld(id, held);
    }
  }
}

void AgentLoop::FinishHeld(const std::string& assignment_id, Held& held) {
  if (held.curtailed || held.finishing) return;
  held.finishing = true;
  gate_.Close(assignment_id);
  actions_.push_back(FinishAction{assignment_id});
}

void AgentLoop::ReleaseLate(const std::string& assignment_id,
                            int64_t lease_epoch, const std::string& reason) {
  late_releases_.push_back({assignment_id, lease_epoch, reason, spool_->end()});
}

void AgentLoop::OnFinished(const std::string& assignment_id) {
  const auto it = held_.find(assignment_id);
  if (it == held_.end() || !it->second.finishing) return;
  if (state_ == State::kWelcomed && !it->second.curtailed) {
    ReleaseLate(assignment_id, it->second.lease_epoch, "drained");
  }
  held_.erase(it);
}

void AgentLoop::OnShutdown() {
  if (state_ == State::kWelcomed) {
    for (const auto& [id, held] : held_) {
      if (!held.curtailed) SendRelease(id, held.lease_epoch, "agent stopping");
    }
  }
  while (!held_.empty()) Drop(held_.begin()->first);
  actions_.push_back(CloseAction{"agent stopping"});
  state_ = State::kStopped;
}

// ---- leases ----

void AgentLoop::SetLease(const std::string& assignment_id, Held& held,
                         int64_t lease_ms) {
  const absl::Duration lease =
      lease_ms > 0 ? Clamp(lease_ms, absl::Milliseconds(100), absl::Hours(1))
                   : lease_;
  const SteadyTime now = clock_->Steady();
  held.curtail_at = now + lease * kCurtailAt;
  held.expires_at = now + lease;
  if (!held.finishing) gate_.Open(assignment_id, held.curtail_at);
}

void AgentLoop::Renew(const std::string& assignment_id, Held& held,
                      int64_t lease_ms) {
  if (held.curtailed) return;
  // The runner may have been refused a start already: too late.
  if (clock_->Steady() >= held.curtail_at) return Curtail(assignment_id, held);
  SetLease(assignment_id, held, lease_ms);
}

void AgentLoop::Curtail(const std::string& assignment_id, Held& held) {
  held.curtailed = true;
  gate_.Close(assignment_id);
  if (state_ == State::kWelcomed) {
    SendRelease(assignment_id, held.lease_epoch, "lease not renewed in time");
  }
}

void AgentLoop::CheckLeases(SteadyTime now) {
  std::vector<std::string> expired;
  for (auto& [id, held] : held_) {
    if (!held.curtailed && now >= held.curtail_at) Curtail(id, held);
    if (now >= held.expires_at) expired.push_back(id);
  }
  for (const std::string& id : expired) {
    LOG(kWarning) << LogEvent("lease_lost") << LogDevice(held_.at(id).device_id)
                  << "the lease of assignment " << id << " ran out";
    Drop(id);
  }
}

}  // namespace regatta

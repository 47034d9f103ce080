#include "tracker/tracker_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "tracker/message_check.h"

namespace regatta {
namespace {

// A message to a server stays below this, far from gRPC's limit of 4 MiB.
constexpr size_t kForwardBytes = size_t{512} << 10;


std::map<std::string, PowerHook> HooksOf(const FleetConfig& fleet) {
  std::map<std::string, PowerHook> hooks;
  for (const auto& [id, board] : fleet.boards) {
    if (board.power) hooks.emplace(id, *board.power);
  }
  return hooks;
}

std::map<std::string, DispatchQueue::Grant> GrantsOf(const FleetConfig& fleet) {
  std::map<std::string, DispatchQueue::Grant> grants;
  for (const auto& [user, config] : fleet.users) {
    grants[user] = {config.weight, config.most_percent};
  }
  return grants;
}

}  // namespace

TrackerCore::TrackerCore(const TrackerOptions& options, const Clock& clock,
                         Random& random, FleetStore& store)
    : options_(options),
      clock_(clock),
      random_(random),
      store_(store),
      started_(clock.Steady()),
      standings_(clock, store),
      power_(HooksOf(options.fleet)),
      leases_(store.tracker_epoch()),
      queue_(GrantsOf(options.fleet)),
      results_(options.max_buffered_results, options.max_buffered_bytes),
      relay_(RelayOptions(), clock),
      last_tick_(started_) {
  CHECK(Validate(options).ok()) << Validate(options).message();
  RecallQuarantines();
  const int64_t wall_ms = WallMs();
  for (const KnownAgent& known : store_.Agents()) {
    const absl::Duration away =
        absl::Milliseconds(wall_ms - known.last_seen_unix_ms);
    if (known.lost && away > options_.forget_agent) {
      if (absl::Status status = store_.Forget(known.agent_id); !status.ok()) {
        LOG(kWarning) << status.message();
      }
      ForgetDevicesOf(known.agent_id);
      continue;
    }
    Agent& agent = registry_.Upsert(known.agent_id);
    agent.boot_id = known.boot_id;
    agent.agent_version = known.agent_version;
    agent.compiler_version = known.compiler_version;
    agent.sandbox = known.sandbox;
    agent.holds_stored = known.holds_leases;
    // An agent that was there a moment ago is expected back at once; its note
    // was written when something last changed, not when it was last heard of.
    agent.presence = known.lost ? v1::PRESENCE_LOST : v1::PRESENCE_SUSPECT;
    agent.last_seen =
        known.lost && away > absl::ZeroDuration() ? started_ + -away : started_;
    for (const v1::DeviceInfo& info : known.devices) {
      if (registry_.FindDevice(info.device_id()) != nullptr) continue;
      Device& device = registry_.PutDevice(agent, info);
      faults_.Place(info.device_id(), info.device_class());
      // Its agent was stored, itself not: the store failed in between.
      if (standings_.Find(info.device_id()) == nullptr) Admit(agent, info);
      RefreshState(device, agent);
    }
    registry_.SetUnreported(agent, known.holds_leases);
    LookSoon(agent);
  }
  RecallPower();
}

void TrackerCore::SessionOpened(SessionId session,
                                const SessionCaller& caller) {
  unnamed_sessions_[session] = {clock_.Steady(), caller.local};
  if (caller.identity) callers_.try_emplace(session, *caller.identity);
  RoomForSession(session);
}

void TrackerCore::AgentSaid(SessionId session,
                            const v1::AgentMessage& message) {
  const bool unnamed = unnamed_sessions_.contains(session);
  auto named = sessions_.find(session);
  // Closed by us while the message was under way.
  if (!unnamed && named == sessions_.end()) return;
  absl::Status checked = CheckAgentMessage(message, options_.max_message_bytes);
  if (checked.ok() && unnamed != message.has_hello()) {
    checked = absl::InvalidArgumentError(
        unnamed ? "the first message of a session must be Hello"
                : "a session has only one Hello");
  }
  if (!checked.ok()) {
    LOG(kWarning) << LogEvent("session_ended")
                  << LogAgent(unnamed ? "" : named->second)
                  << LogReason(std::string(checked.message())) << "session of "
                  << (unnamed ? std::string("an unnamed agent")
                              : "agent " + named->second)
                  << " ended: " << checked.message();
    NoteRefusal(session, "Session", std::string(checked.message()));
    Close(session, checked);
    Settle();
    return;
  }
  if (unnamed) {
    OnHello(session, message.hello());
    Settle();
    return;
  }
  Agent& agent = *registry_.FindAgent(named->second);
  agent.last_seen = clock_.Steady();
  const bool was_quiet =
      std::exchange(agent.quiet, absl::ZeroDuration()) > absl::ZeroDuration();
  if (was_quiet) Reindex(agent);
  if (agent.presence != v1::PRESENCE_ONLINE) {
    SetPresence(agent, v1::PRESENCE_ONLINE);
    Reindex(agent);
  }
  if (OnRelayed(session, message)) return Settle();
  switch (message.message_case()) {
    case v1::AgentMessage::kHeartbeat:
      OnHeartbeat(agent, message.heartbeat());
      break;
    case v1::AgentMessage::kAssignmentReply:
      OnReply(agent, message.assignment_reply());
      break;
    case v1::AgentMessage::kResultBatch:
      OnResults(agent, message.result_batch());
      break;
    case v1::AgentMessage::kRelease:
      OnRelease(agent, message.release());
      break;
    case v1::AgentMessage::kDeviceUpdate:
      OnDeviceUpdate(agent, message.device_update());
      break;
    case v1::AgentMessage::kLeaving:
      OnLeaving(agent, message.leaving());
      break;
    default:
      CHECK(false) << "checked above";
  }
  Settle();
}

void TrackerCore::SessionClosed(SessionId session) {
  Detach(session);
  Settle();
}

void TrackerCore::Detach(SessionId session) {
  unnamed_sessions_.erase(session);
  callers_.erase(session);
  auto named = sessions_.find(session);
  if (named == sessions_.end()) return;
  Agent& agent = *registry_.FindAgent(named->second);
  sessions_.erase(named);
  relay_.Remove(session);
  agent.session.reset();
  SetPresence(agent, agent.returns_by || agent.reboot_until
                         ? v1::PRESENCE_REBOOTING
                         : v1::PRESENCE_SUSPECT);
  agent.quiet = absl::ZeroDuration();
  Reindex(agent);
}

void TrackerCore::ServerOpened(StreamId stream) { streams_[stream] = ""; }

void TrackerCore::ServerSaid(StreamId stream,
                             const v1::DispatchRequest& request) {
  auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  absl::Status checked = CheckDispatchRequest(request);
  const bool attached = !it->second.empty();
  if (checked.ok() && attached == request.has_attach()) {
    checked = absl::InvalidArgumentError(
        attached ? "a stream has only one Attach"
                 : "the first request of a stream must be Attach");
  }
  if (checked.ok() && request.has_submit()) {
    checked = CheckSubmit(it->second, request.submit());
  }
  if (!checked.ok()) {
    LOG(kWarning) << "stream of server " << it->second
                  << " ended: " << checked.message();
    Close(stream, checked);
    Settle();
    return;
  }
  const std::string server_id = it->second;
  switch (request.request_case()) {
    case v1::DispatchRequest::kAttach:
      OnAttach(stream, request.attach());
      break;
    case v1::DispatchRequest::kSubmit:
      OnSubmit(server_id, request.submit());
      break;
    case v1::DispatchRequest::kCancel:
      OnCancelWork(server_id, request.cancel());
      break;
    case v1::DispatchRequest::kCommitAck:
      OnCommitAck(server_id, request.commit_ack());
      break;
    case v1::DispatchRequest::kCanaries:
      OfferCanaries(request.canaries());
      break;
    case v1::DispatchRequest::kAskFleet:
      TellWholeFleet(servers_.find(server_id)->second);
      break;
    case v1::DispatchRequest::REQUEST_NOT_SET:
      CHECK(false) << "checked above";
  }
  Settle();
}

void TrackerCore::ServerClosed(StreamId stream) {
  auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  if (auto server = servers_.find(it->second); server != servers_.end()) {
    server->second.stream.reset();
    server->second.since = clock_.Steady();
  }
  streams_.erase(it);
}

void TrackerCore::Goodbye(absl::Duration reconnect_after) {
  for (const auto& [session, agent_id] : sessions_) {
    v1::TrackerMessage message;
    message.mutable_goodbye()->set_reconnect_after_ms(
        absl::ToInt64Milliseconds(reconnect_after));
    Send(session, std::move(message));
  }
  const absl::Status ending =
      absl::UnavailableError("the tracker is shutting down");
  while (!sessions_.empty()) Close(sessions_.begin()->first, ending);
  while (!unnamed_sessions_.empty()) {
    Close(unnamed_sessions_.begin()->first, ending);
  }
  while (!streams_.empty()) Close(streams_.begin()->first, ending);
  FlushStore();
}

std::deque<Action> TrackerCore::TakeActions() {
  for (v1::DeviceEvent& event : standings_.TakeNews()) {
    actions_.push_back(Announce{std::move(event)});
  }
  open_results_.clear();
  return std::exchange(actions_, {});
}

void TrackerCore::Send(SessionId session, v1::TrackerMessage message) {
  actions_.push_back(SendToAgent{session, std::move(message)});
}

void TrackerCore::Close(SessionId session, const absl::Status& status) {
  actions_.push_back(CloseSession{session, status});
  Detach(session);
}

void TrackerCore::Send(StreamId stream, v1::DispatchEvent event) {
  actions_.push_back(SendToServer{stream, std::move(event)});
}

void TrackerCore::SendResult(StreamId stream, const v1::TrialResult& result) {
  v1::DispatchEvent* event = nullptr;
  const auto open = open_results_.find(stream);
  if (open != open_results_.end()) {
    event = &std::get<SendToServer>(actions_[open->second.action]).event;
  } else {
    Send(stream, v1::DispatchEvent());
    event = &std::get<SendToServer>(actions_.back()).event;
  }
  OpenResults& into =
      open_results_.try_emplace(stream, OpenResults{actions_.size() - 1, 0})
          .first->second;
  *event->mutable_results()->add_results() = result;
  into.bytes += result.ByteSizeLong();
  if (into.bytes >= kForwardBytes) open_results_.erase(stream);
}

void TrackerCore::Close(StreamId stream, const absl::Status& status) {
  actions_.push_back(CloseServer{stream, status});
  ServerClosed(stream);
}

void TrackerCore::BeginGroup() { in_group_ = true; }

void TrackerCore::EndGroup() {
  in_group_ = false;
  Settle();
}

void TrackerCore::Settle() {
  if (in_group_) return;
  FlushRelay();
  StartCanaries();
  DispatchDirty();
  ReportFleet();
}

}  // namespace regatta

// TrackerCore's conversation with agents.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "proto/device_time.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// What an agent says about a trial that it did not run to an end. Such a
// report must not close the trial: whether it is cancelled or lost for good is
// decided here and by the server.
bool IsNoResult(v1::Outcome outcome) {
  return outcome == v1::OUTCOME_CANCELLED || outcome == v1::OUTCOME_AGENT_LOST;
}

v1::TrialAck Ack(const v1::TrialResult& result, v1::AckStatus status,
                 const std::string& reason) {
  v1::TrialAck ack;
  ack.set_trial_id(result.spec().trial_id());
  ack.set_attempt(result.attempt());
  ack.set_status(status);
  ack.set_reason(reason);
  return ack;
}

// Over all its messages.
constexpr ptrdiff_t kMaxDevicesOfAgent = 256;

}  // namespace

void TrackerCore::OnHello(SessionId session, const v1::Hello& hello) {
  absl::Status owned = CheckCaller(session, hello);
  if (owned.ok()) owned = CheckOwnership(session, hello.agent_id(), hello);
  if (!owned.ok()) {
    LOG(kWarning) << LogEvent("agent_refused") << LogAgent(hello.agent_id())
                  << LogReason(std::string(owned.message())) << "agent "
                  << hello.agent_id() << " refused: " << owned.message();
    NoteRefusal(session, "Hello", std::string(owned.message()));
    Close(session, owned);
    return;
  }
  Agent& agent = registry_.Upsert(hello.agent_id());
  const bool rebooted = !agent.boot_id.empty() && !hello.boot_id().empty() &&
                        agent.boot_id != hello.boot_id();
  const bool announced =
      agent.returns_by.has_value() || agent.reboot_until.has_value();
  if (agent.session) {
    Close(*agent.session,
          absl::AbortedError(absl::StrCat("a newer session of agent ", agent.id,
                                          " took over")));
  }
  if (agent.instance_id != hello.instance_id()) {
    agent.loop.Reset();
    if (TakeTurns(agent, hello.instance_id()) && BarTurns(session, agent)) {
      return;
    }
  }
  agent.boot_id = hello.boot_id();
  agent.agent_version = hello.agent_version();
  agent.compiler_version = hello.compiler_version();
  agent.space = hello.space();
  agent.space_version = hello.space_version();
  agent.sandbox = hello.sandbox();
  agent.clock_offset_ms.reset();
  if (hello.unix_ms() > 0) agent.clock_offset_ms = hello.unix_ms() - WallMs();
  agent.connected = agent.last_seen = clock_.Steady();
  agent.quiet = absl::ZeroDuration();
  agent.owes_results = false;  // it sends its whole spool again
  agent.measure_only = !hello.trusted_builders().empty();
  agent.devices_follow = hello.devices_follow();
  agent.returns_by.reset();
  agent.local = unnamed_sessions_.find(session)->second.local;
  if (!agent.devices_follow) TakeDevices(agent, hello.devices());
  unnamed_sessions_.erase(session);
  sessions_[session] = agent.id;
  agent.session = session;
  agent.presence = v1::PRESENCE_ONLINE;
  Touch(agent);
  dirty_agents_.insert(agent.id);

  v1::TrackerMessage message;
  v1::Welcome* welcome = message.mutable_welcome();
  welcome->set_session_id(
      absl::StrCat(store_.tracker_epoch(), "-", absl::Hex(random_.Next())));
  welcome->set_tracker_epoch(store_.tracker_epoch());
  welcome->set_heartbeat_ms(absl::ToInt64Milliseconds(options_.heartbeat));
  welcome->set_lease_ms(absl::ToInt64Milliseconds(options_.lease));
  welcome->set_relays_builds(true);
  const std::vector<std::string> held = leases_.OfAgent(agent.id);
  const bool mid_run = std::any_of(
      held.begin(), held.end(),
      [this](const std::string& id) { return leases_.Find(id)->accepted; });
  Reconcile(agent, hello, rebooted && !announced, welcome);
  if (rebooted) {
    OnReboot(agent, announced, mid_run);
  } else {
    for (const std::string& id : agent.device_ids) lost_runs_.erase(id);
  }
  ProvePower(agent);
  const std::string session_id = welcome->session_id();
  Send(session, std::move(message));
  relay_.Add(session, hello);
  const bool reports = agent.unreported;
  registry_.SetUnreported(agent, false);
  Reindex(agent);
  LookSoon(agent);
  if (reports) MarkAllDirty();
  LOG(kInfo) << LogEvent("agent_connected") << LogAgent(agent.id)
             << LogSession(session_id) << "agent " << agent.id
             << " is here with " << agent.device_ids.size()
             << " device(s), holding " << hello.held_size();
}

absl::Status TrackerCore::CheckOwnership(SessionId session,
                                         std::string_view agent_id,
                                         const v1::Hello& hello) {
  for (const v1::DeviceInfo& info : hello.devices()) {
    const Device* device = registry_.FindDevice(info.device_id());
    if (device == nullptr || device->agent_id == agent_id) continue;
    if (registry_.FindAgent(device->agent_id)->session) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", info.device_id(),
                       " is already served by agent ", device->agent_id,
                       ", which is connected; stop that agent or give "
                       "this device another id"));
    }
    // By its certificate an agent has the devices that are called after it, and
    // no other agent's, be that one away or not.
    if (callers_.contains(session)) {
      return absl::PermissionDeniedError(
          absl::StrCat("device ", info.device_id(), " is agent ",
                       device->agent_id, "'s; give this device another id"));
    }
  }
  return absl::OkStatus();
}

void TrackerCore::TakeDevices(Agent& agent, const DeviceList& devices) {
  std::set<std::string> offered;
  for (const v1::DeviceInfo& info : devices) {
    offered.insert(info.device_id());
    const Device* device = registry_.FindDevice(info.device_id());
    if (device != nullptr && device->agent_id != agent.id) {
      dirty_agents_.insert(device->agent_id);
      DropDevice(info.device_id());
    }
  }
  const std::set<std::string, std::less<>> before = agent.device_ids;
  for (const std::string& id : before) {
    if (!offered.contains(id)) DropDevice(id);
  }
  for (const v1::DeviceInfo& info : devices) PutDevice(agent, info);
}

void TrackerCore::DropDevice(const std::string& device_id) {
  const std::string agent_id = registry_.FindDevice(device_id)->agent_id;
  for (const std::string& id : leases_.OfAgent(agent_id)) {
    if (leases_.Find(id)->device_id == device_id) {
      LoseLease(id, absl::StrCat("agent ", agent_id,
                                 " no longer serves device ", device_id));
    }
  }
  lost_runs_.erase(device_id);
  registry_.RemoveDevice(device_id);
  faults_.Place(device_id, "");
  // Nobody has decided anything about it.
  const v1::DeviceStanding* standing = standings_.Find(device_id);
  if (standing != nullptr && standing->trust() == v1::TRUST_PENDING) {
    ForgetStanding(device_id);
  }
}

void TrackerCore::OnHeartbeat(Agent& agent, const v1::Heartbeat& heartbeat) {
  ++counts_.heartbeats;
  const SteadyTime now = clock_.Steady();
  agent.quiet =
      std::min(absl::Milliseconds(heartbeat.quiet_ms()), options_.quiet_max);
  if (agent.quiet > absl::ZeroDuration()) Reindex(agent);
  const bool was_stuck = agent.loop.stuck();
  agent.loop.Observe(heartbeat.work_ticks(), now);
  const bool stuck = agent.loop.stuck();
  if (was_stuck != stuck) Reindex(agent);
  Watch(agent);  // its counter moved, perhaps for the first time

  v1::TrackerMessage message;
  v1::HeartbeatAck* ack = message.mutable_heartbeat_ack();
  ack->set_sequence(heartbeat.sequence());
  ack->set_lease_ms(absl::ToInt64Milliseconds(options_.lease));
  if (agent.measure_only) {
    ack->set_builders_change((store_.tracker_epoch() << 20) + relay_.change());
  }
  for (const std::string& id : heartbeat.held_assignment_ids()) {
    Lease* lease = leases_.Find(id);
    if (lease != nullptr && lease->agent_id == agent.id) {
      if (!lease->accepted || stuck) continue;
      leases_.Until(*lease, now + options_.lease);
      ack->add_renewed(id);
      continue;
    }
    const WorkItem* work = FindWork(id);
    // Its results are here and wait for the server: nothing to drop or renew.
    if (work != nullptr && work->finished_by == agent.id) continue;
    ack->add_abandoned(id);
  }
  Send(*agent.session, std::move(message));
}

void TrackerCore::OnReply(Agent& agent, const v1::AssignmentReply& reply) {
  Lease* lease = leases_.Find(reply.assignment_id());
  if (lease == nullptr || lease->agent_id != agent.id ||
      lease->epoch != reply.lease_epoch()) {
    return;  // about an earlier dispatch
  }
  Device* device = registry_.FindDevice(lease->device_id);
  if (reply.accepted()) {
    lease->accepted = true;
    leases_.Until(*lease, clock_.Steady() + options_.lease);
    if (device != nullptr) {
      device->refusal.clear();
      if (device->canary == reply.assignment_id()) device->canary_refusals = 0;
    }
    return;
  }
  if (lease->accepted) return;  // too late to refuse; Release is for that
  ++counts_.assignments_refused;
  LOG(kWarning) << LogEvent("assignment_refused") << LogAgent(agent.id)
                << LogReason(Brief(reply.reason())) << "agent " << agent.id
                << " refused " << reply.assignment_id() << ": "
                << Brief(reply.reason());
  if (device != nullptr) {
    device->refusal = Brief(reply.reason());
    device->not_before = clock_.Steady() + options_.cool_down;
    if (device->canary == reply.assignment_id()) {
      CanaryRefused(*device);
    }
  }
  EndLease(reply.assignment_id());
  if (WorkItem* work = FindWork(reply.assignment_id())) Requeue(*work);
}

void TrackerCore::OnResults(Agent& agent, const v1::ResultBatch& batch) {
  std::map<std::string, std::vector<const v1::TrialResult*>> fresh;
  v1::TrackerMessage message;
  int not_owned = 0;
  for (const v1::SpooledResult& spooled : batch.results()) {
    if (!Holds(agent, spooled.assignment_id(), spooled.result().lease_epoch(),
               spooled.lease_proof())) {
      *message.mutable_result_ack()->add_acks() =
          Ack(spooled.result(), v1::ACK_STATUS_REJECTED, "NOT_OWNER");
      ++not_owned;
      continue;
    }
    OnResult(agent, spooled, &fresh, message.mutable_result_ack());
  }
  for (const auto& [server_id, results] : fresh) Forward(server_id, results);
  if (message.result_ack().acks_size() > 0) {
    Send(*agent.session, std::move(message));
  }
  for (; not_owned > 0 && agent.session; --not_owned) SpokeForOthers(agent);
  if (!buffer_full_ && results_.Level() >= 0.8) {
    buffer_full_ = waits_changed_ = true;
    LOG(kWarning) << results_.size()
                  << " results wait for a server's commit; boards get no new "
                     "work until it takes them";
  }
}

void TrackerCore::OnResult(
    Agent& agent, const v1::SpooledResult& spooled,
    std::map<std::string, std::vector<const v1::TrialResult*>>* fresh,
    v1::ResultAck* closed) {
  const std::string& id = spooled.assignment_id();
  const v1::TrialResult& result = spooled.result();
  const std::string server_id(ServerOf(id));
  Lease* lease = leases_.Find(id);
  if (lease != nullptr &&
      (lease->agent_id != agent.id || lease->epoch != result.lease_epoch())) {
    lease = nullptr;  // of an earlier dispatch: stored, but ends nothing
  }
  if (lease != nullptr) lease->accepted = true;
  if (auto revoked = revoked_.find(result.lease_epoch());
      revoked != revoked_.end()) {
    if (spooled.last()) revoked->second.confirmed = true;
    *closed->add_acks() =
        Ack(result, v1::ACK_STATUS_REJECTED,
            absl::StrCat("the work was taken from device ",
                         revoked->second.device_id, " before it ended"));
    return;
  }
  // An outcome that does not exist is the server's to refuse.
  if (server_id != kCanaryServer && v1::Outcome_IsValid(result.outcome())) {
    ++counts_.results[result.outcome()];
  }
  if (server_id == kCanaryServer) {
    *closed->add_acks() = Ack(result, v1::ACK_STATUS_STORED, "");
    OnCanaryResult(agent, spooled);
    return;
  }
  WorkItem* work = FindWork(id);
  bool full = false;
  bool given_up = false;
  bool news = false;
  std::string device_of_result;
  if (server_id.empty()) {
    *closed->add_acks() =
        Ack(result, v1::ACK_STATUS_REJECTED,
            absl::StrCat("assignment ", id, " is of no server"));
  } else if (result.outcome() == v1::OUTCOME_DEVICE_FAULT && lease != nullptr &&
             work != nullptr &&
             RetriedElsewhere(*work, *lease, result, &news)) {
    *closed->add_acks() =
        Ack(result, v1::ACK_STATUS_REJECTED,
            "a device failure, not the trial's last word; nothing to store");
    const std::string device_id = lease->device_id;
    if (news) NoteTrial(device_id, /*fault=*/true, Brief(result.detail()));
    lease = leases_.Find(id);  // gone with a device that is quarantined now
  } else if (IsNoResult(result.outcome())) {
    *closed->add_acks() =
        Ack(result, v1::ACK_STATUS_REJECTED, "not a result; nothing to store");
  } else if (given_up = GivenUp(server_id); given_up) {
    agent.owed_servers.insert(server_id);
  } else {
    const ResultBuffer::Added added = results_.Add(server_id, agent.id, result);
    full = added == ResultBuffer::Added::kFull;
    if (full) agent.owes_results = results_owed_ = true;
    if (added == ResultBuffer::Added::kNew) {
      if (lease != nullptr) {
        queue_.Charge(id, absl::Nanoseconds(DeviceNs(result)));
        device_of_result = lease->device_id;
      }
      (*fresh)[server_id].push_back(&result);
    }
    for (int i = 0; !full && work != nullptr && i < work->work.trials_size();
         ++i) {
      if (work->work.trials(i).trial_id() == result.spec().trial_id()) {
        work->trials[i].reported_attempt = result.attempt();
      }
    }
  }
  if (!device_of_result.empty()) {
    NoteTrial(device_of_result, result.outcome() == v1::OUTCOME_DEVICE_FAULT,
              Brief(result.detail()));
    lease = leases_.Find(id);
  }
  EndByResult(agent, spooled, lease, work, full, given_up);
}

void TrackerCore::EndByResult(Agent& agent, const v1::SpooledResult& spooled,
                              const Lease* lease, WorkItem* work, bool full,
                              bool given_up) {
  const std::string& id = spooled.assignment_id();
  const v1::TrialResult& result = spooled.result();
  if (lease != nullptr && spooled.last()) {
    const std::string device_id = lease->device_id;
    EndLease(id);
    if (work == nullptr) return;
    if (given_up) {
      EraseWork(*work);
      return;
    }
    if (work->AllReported() || full || agent.owes_results ||
        result.outcome() == v1::OUTCOME_CANCELLED) {
      Requeue(*work);
    } else {
      RequeueLost(
          *work, device_id,
          absl::StrCat(
              "agent ", agent.id, " ended it without a result for each trial",
              IsNoResult(result.outcome()) ? ": " : "",
              IsNoResult(result.outcome()) ? Brief(result.detail()) : ""),
          /*device_fault=*/false);
    }
    if (work->state == WorkItem::State::kFinished) work->finished_by = agent.id;
  } else if (work != nullptr && work->state == WorkItem::State::kQueued &&
             work->AllReported()) {
    queue_.Remove(work->entry(), clock_.Steady());
    work->finished_by = agent.id;
    Requeue(*work);
  } else if (work != nullptr && work->state == WorkItem::State::kCancelling &&
             work->AllReported()) {
    cancelling_.erase(id);
    work->finished_by = agent.id;
    Requeue(*work);
  }
}

bool TrackerCore::GivenUp(const std::string& server_id) {
  auto [server, unknown] = servers_.try_emplace(server_id);
  // From an agent's spool: the server has not attached to this tracker yet.
  if (unknown) server->second.since = clock_.Steady();
  return server->second.given_up;
}

void TrackerCore::OnRelease(Agent& agent, const v1::Release& release) {
  ConfirmStop(agent, release.lease_epoch());
  if (auto it = cancelling_.find(release.assignment_id());
      it != cancelling_.end()) {
    // The agent's answer to the Cancel. Results can be right behind it.
    it->second =
        std::min(it->second, clock_.Steady() + options_.cancel_answered_grace);
    return;
  }
  Lease* lease = leases_.Find(release.assignment_id());
  if (lease == nullptr || lease->agent_id != agent.id ||
      lease->epoch != release.lease_epoch()) {
    return;
  }
  const std::string device_id = lease->device_id;
  if (Device* device = registry_.FindDevice(device_id)) {
    device->not_before = clock_.Steady() + options_.cool_down;
  }
  EndLease(release.assignment_id());
  WorkItem* work = FindWork(release.assignment_id());
  if (work == nullptr) return;
  if (release.device_fault()) {
    NoteTrial(device_id, /*fault=*/true, Brief(release.reason()));
    RequeueLost(
        *work, device_id,
        absl::StrCat("device ", device_id, ": ", Brief(release.reason())),
        /*device_fault=*/true);
  } else {
    Requeue(*work);
  }
}

void TrackerCore::OnDeviceUpdate(Agent& agent, const v1::DeviceUpdate& update) {
  if (absl::Status own = CheckOwnDevices(*agent.session, update.devices());
      !own.ok()) {
    NoteRefusal(*agent.session, "DeviceUpdate", std::string(own.message()));
    Close(*agent.session, own);
    return;
  }
  for (const v1::DeviceInfo& info : update.devices()) {
    const Device* device = registry_.FindDevice(info.device_id());
    if (device != nullptr && device->agent_id != agent.id) {
      Close(*agent.session,
            absl::InvalidArgumentError(absl::StrCat(
                "device ", info.device_id(), " is agent ", device->agent_id,
                "'s, not agent ", agent.id, "'s")));
      return;
    }
  }
  std::set<std::string_view> devices(agent.device_ids.begin(),
                                     agent.device_ids.end());
  for (const v1::DeviceInfo& info : update.devices()) {
    devices.insert(info.device_id());
  }
  if (std::ssize(devices) > kMaxDevicesOfAgent) {
    Close(*agent.session, absl::InvalidArgumentError(absl::StrCat(
                              "agent ", agent.id, " has more than ",
                              kMaxDevicesOfAgent, " devices")));
    return;
  }
  if (agent.devices_follow) {
    agent.devices_follow = false;
    TakeDevices(agent, update.devices());
  } else {
    for (const v1::DeviceInfo& info : update.devices()) PutDevice(agent, info);
  }
  dirty_agents_.insert(agent.id);
  waits_changed_ = true;
  ProvePower(agent);
  Reindex(agent);
  LookSoon(agent);
}

void TrackerCore::LoseAgent(Agent& agent) {
  ++counts_.agents_lost;
  LOG(kWarning) << LogEvent("agent_lost") << LogAgent(agent.id) << "agent "
                << agent.id << " is lost";
  if (agent.session) {
    Close(*agent.session,
          absl::UnavailableError(absl::StrCat(
              "the tracker heard nothing for ",
              absl::FormatDuration(options_.lost), "; connect again")));
  }
  SetPresence(agent, v1::PRESENCE_LOST);
  dirty_agents_.insert(agent.id);
  waits_changed_ = true;
  for (const std::string& id : leases_.OfAgent(agent.id)) {
    LoseLease(id, absl::StrCat("agent ", agent.id, " was lost"));
  }
  agent.loop.Reset();
  Reindex(agent);
}

}  // namespace regatta

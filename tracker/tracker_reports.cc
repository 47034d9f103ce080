// TrackerCore: deadlines, and what people and servers are told.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "proto/outcome_names.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"
#include "tracker/wait_reason.h"

namespace regatta {

int64_t TrackerCore::WallMs() const {
  return absl::ToUnixMillis(clock_.Wall());
}

void TrackerCore::Tick() {
  const SteadyTime now = clock_.Steady();
  AbsorbStall(now);
  std::vector<SessionId> silent;
  for (const auto& [session, unnamed] : unnamed_sessions_) {
    if (now - unnamed.since >= options_.hello) silent.push_back(session);
  }
  for (SessionId session : silent) {
    Close(session, absl::InvalidArgumentError(absl::StrCat(
                       "no Hello for ", absl::FormatDuration(options_.hello))));
  }
  if (!unreported_holders_.empty() &&
      now - started_ >= options_.restart_window) {
    unreported_holders_.clear();
    MarkAllDirty();
  }
  CheckPresence(now);
  ExpireLeases(now);
  AdvanceHolds(now);
  AdvanceCanaries(now);
  AdvancePower(now);
  for (const std::string& device_class : brake_.Due(now)) {
    LiftBrake(device_class, "ten minutes have passed");
  }
  if (!store_error_.empty()) MarkAllDirty();
  FlushStore();
  ForgetAgents(now);
  SettleCancelled(now);
  DropAwayServers(now);
  relay_.Tick();
  FlushRelay();
  StartCanaries();
  DispatchDirty();
  ReportFleet(/*force=*/false);
  if (now - last_wait_report_ >= options_.wait_report_interval) {
    last_wait_report_ = now;
    ReportWaits();
  }
}

// A process that was stopped or starved must not blame others for its own
// silence.
void TrackerCore::AbsorbStall(SteadyTime now) {
  const absl::Duration stall = now - last_tick_ - options_.tick;
  last_tick_ = now;
  if (stall < options_.stall) return;
  LOG(kWarning) << "this process stood still for "
                << absl::FormatDuration(stall)
                << "; all deadlines are moved by that";
  leases_.ExtendAll(stall, now + options_.lease);
  for (auto& [id, agent] : registry_.agents()) {
    if (agent.presence != v1::PRESENCE_LOST) {
      agent.last_seen = std::min(now, agent.last_seen + stall);
    }
    agent.loop.ExtendBy(stall);
  }
  relay_.ExtendBy(stall);
  for (auto& [id, until] : cancelling_) until = until + stall;
  for (auto& [session, unnamed] : unnamed_sessions_) {
    unnamed.since = std::min(now, unnamed.since + stall);
  }
  standings_.ExtendAll(stall);
  for (auto& [id, run] : canary_runs_) run.deadline = run.deadline + stall;
}

void TrackerCore::CheckPresence(SteadyTime now) {
  for (auto& [id, agent] : registry_.agents()) {
    // It said that it would go, and did not.
    for (std::optional<SteadyTime>* due :
         {&agent.returns_by, &agent.reboot_until}) {
      if (agent.session && *due && now >= **due) due->reset();
    }
    const v1::Presence presence =
        PresenceOf({agent.session.has_value(), agent.last_seen, agent.quiet,
                    agent.returns_by ? agent.returns_by : agent.reboot_until},
                   now, options_);
    if (presence != agent.presence) {
      fleet_changed_ = waits_changed_ = true;
      if (presence == v1::PRESENCE_LOST) {
        LoseAgent(agent);
      } else {
        agent.presence = presence;
      }
    }
    const bool holds = !leases_.OfAgent(id).empty();
    const bool was_stuck = agent.loop.stuck();
    agent.loop.Judge(holds, now, options_.stuck);
    if (agent.loop.stuck() && !was_stuck) {
      for (const std::string& device_id : agent.device_ids) {
        Unprove(device_id, "its work loop stood still");
      }
    }
    // Also ends cool-downs and notices a stuck loop.
    Reindex(agent);
    if (holds) agent.last_leased = now;
    if (agent.holds_stored && !holds && !unreported_holders_.contains(id) &&
        now - agent.last_leased >= options_.lease) {
      agent.holds_stored = false;
      agent.store_dirty = true;
    }
  }
}

void TrackerCore::ExpireLeases(SteadyTime now) {
  for (const std::string& id : leases_.Expired(now)) {
    const Lease lease = *leases_.Find(id);
    if (Device* device = registry_.FindDevice(lease.device_id)) {
      device->not_before = now + options_.cool_down;
    }
    Agent& agent = *registry_.FindAgent(lease.agent_id);
    if (agent.session) {
      v1::TrackerMessage message;
      message.mutable_cancel()->add_assignment_ids(id);
      Send(*agent.session, std::move(message));
    }
    ++counts_.leases_expired;
    LOG(kWarning) << LogEvent("lease_lost") << LogDevice(lease.device_id)
                  << LogAgent(agent.id)
                  << "the lease of " << id << " ran out";
    LoseLease(id, absl::StrCat("the lease of agent ", agent.id, " ran out"));
  }
  std::vector<std::string> unwanted;
  for (const auto& [id, lease] : leases_.all()) {
    if (FindWork(id) == nullptr && !MayBeWanted(id)) unwanted.push_back(id);
  }
  for (const std::string& id : unwanted) RevokeLease(id);
}

void TrackerCore::FlushStore() {
  std::vector<KnownAgent> known;
  std::vector<Agent*> stored;
  for (auto& [id, agent] : registry_.agents()) {
    if (!agent.store_dirty) continue;
    const int64_t silent_ms =
        absl::ToInt64Milliseconds(clock_.Steady() - agent.last_seen);
    known.push_back(ToKnown(agent, registry_, WallMs() - silent_ms));
    stored.push_back(&agent);
  }
  // Before their agents: what the store lists was admitted.
  absl::Status status = standings_.Flush();
  if (status.ok() && known.empty() && store_error_.empty()) return;
  if (status.ok()) status = store_.Put(known);
  if (!status.ok() && store_error_.empty()) LOG(kError) << status.message();
  store_error_ = std::string(status.message());
  if (!status.ok()) return;
  for (Agent* agent : stored) agent->store_dirty = false;
}

void TrackerCore::ForgetAgents(SteadyTime now) {
  std::vector<std::string> gone;
  for (const auto& [id, agent] : registry_.agents()) {
    if (agent.presence == v1::PRESENCE_LOST && !agent.session &&
        now - agent.last_seen > options_.forget_agent &&
        leases_.OfAgent(id).empty()) {
      gone.push_back(id);
    }
  }
  for (const std::string& id : gone) {
    LOG(kInfo) << "agent " << id << " has not been seen for "
               << absl::FormatDuration(options_.forget_agent)
               << " and is forgotten";
    // One that the store fails to forget goes with the next start.
    if (absl::Status status = store_.Forget(id); !status.ok()) {
      LOG(kWarning) << status.message();
    }
    unreported_holders_.erase(id);
    for (const std::string& device : registry_.FindAgent(id)->device_ids) {
      ForgetStanding(device);
    }
    registry_.Remove(id);
    fleet_changed_ = waits_changed_ = true;
  }
}

void TrackerCore::DropAwayServers(SteadyTime now) {
  for (auto it = servers_.begin(); it != servers_.end();) {
    Server& server = it->second;
    if (server.stream || now - server.since < options_.server_away) {
      ++it;
      continue;
    }
    const std::string prefix = it->first + "/";
    // Else they would fill the buffer and keep work from everybody.
    for (const std::string& agent_id : results_.DropServer(it->first)) {
      Agent* agent = registry_.FindAgent(agent_id);
      if (agent != nullptr) agent->owed_servers.insert(it->first);
    }
    if (!server.given_up) {
      LOG(kWarning) << "server " << it->first << " has been away for "
                    << absl::FormatDuration(options_.server_away)
                    << "; its results are left to the agents' spools";
      server.given_up = true;
      AfterAcks();
    }
    for (auto work = works_.lower_bound(prefix);
         work != works_.end() && work->first.starts_with(prefix);) {
      WorkItem& item = (work++)->second;
      if (item.state == WorkItem::State::kLeased) continue;
      if (item.state == WorkItem::State::kQueued) {
        queue_.Remove(item.entry(), clock_.Steady());
      }
      EraseWork(item);
    }
    // Kept, since agents may go on sending results for it.
    ++it;
  }
}

void TrackerCore::RefreshState(Device& device, const Agent& agent) {
  const v1::DeviceStanding& standing =
      *standings_.Find(device.info.device_id());
  std::string state = "idle";
  if (standing.operator_state() != v1::OPERATOR_STATE_NORMAL) {
    state = OperatorStateName(standing.operator_state());
  } else if (standing.trust() == v1::TRUST_PENDING ||
             standing.trust() == v1::TRUST_QUARANTINED ||
             standing.trust() == v1::TRUST_BROKEN) {
    state = TrustName(standing.trust());
  } else if (agent.presence == v1::PRESENCE_LOST ||
             agent.presence == v1::PRESENCE_REBOOTING) {
    state = PresenceName(agent.presence);
  } else if (agent.presence != v1::PRESENCE_ONLINE || agent.loop.stuck()) {
    state = "suspect";
  } else if (IsDraining(device.info.health())) {
    state = "draining";
  } else if (standing.trust() == v1::TRUST_UNKNOWN && HasCanary(device)) {
    state = "checking";
  } else if (leases_.Load(agent.id, device.info.device_id()) > 0) {
    state = "busy";
  } else if (WaitsForBuilder(agent, device)) {
    state = "waiting";
  }
  if (state == device.state) return;
  device.state = std::move(state);
  device.state_since = clock_.Steady();
}

v1::DeviceStatus TrackerCore::StatusOf(const Device& device) const {
  const Agent& agent = registry_.agents().find(device.agent_id)->second;
  const SteadyTime now = clock_.Steady();
  v1::DeviceStatus status;
  *status.mutable_info() = device.info;
  status.set_agent_id(agent.id);
  status.set_presence(agent.presence);
  status.set_state(device.state);
  status.set_compiler_version(device.key.compiler_version);
  status.set_agent_version(agent.agent_version);
  status.set_sandbox(device.info.sandbox().empty() ? agent.sandbox
                                                   : device.info.sandbox());
  status.set_measure_only(agent.measure_only);
  status.set_builder(BuilderOf(agent, device));
  status.set_state_since_ms(
      absl::ToInt64Milliseconds(now - device.state_since));
  status.set_last_seen_ms(absl::ToInt64Milliseconds(now - agent.last_seen));
  status.set_has_clock_offset(agent.clock_offset_ms.has_value());
  status.set_clock_offset_ms(agent.clock_offset_ms.value_or(0));
  if (device.canary_passed) {
    status.set_canary_passed_ms(std::max<int64_t>(
        1, absl::ToInt64Milliseconds(now - *device.canary_passed)));
  }
  *status.mutable_standing() = *standings_.Find(device.info.device_id());
  status.mutable_standing()->clear_canary_times();
  status.set_obstacle(ObstacleOf(status.standing()));
  if (status.obstacle().empty() &&
      !brake_.Why(device.info.device_class()).empty()) {
    status.set_obstacle("kept from work with its whole class: " +
                        brake_.Why(device.info.device_class()));
  }
  if (status.obstacle().empty() && IsDraining(device.info.health())) {
    status.set_obstacle(device.info.health());
  }
  for (const std::string& id : leases_.OfAgent(agent.id)) {
    const Lease& lease = leases_.all().find(id)->second;
    if (!lease.device_id.empty() &&
        lease.device_id != device.info.device_id()) {
      continue;
    }
    status.set_running(status.running() + 1);
    auto work = works_.find(id);
    if (status.running_what().empty() && work != works_.end()) {
      status.set_running_what(work->second.work.trials(0).workload());
    }
  }
  return status;
}

v1::ListDevicesResponse TrackerCore::ListDevices() const {
  v1::ListDevicesResponse response;
  for (const auto& [id, device] : registry_.devices()) {
    *response.add_devices() = StatusOf(device);
  }
  for (v1::BuilderStatus& builder : relay_.Builders()) {
    *response.add_builders() = std::move(builder);
  }
  response.mutable_tracker()->set_version(REGATTA_VERSION);
  response.mutable_tracker()->set_unix_ms(WallMs());
  return response;
}

void TrackerCore::ReportFleet(bool force) {
  const SteadyTime now = clock_.Steady();
  // It tells of all devices: of many, less often.
  const absl::Duration interval =
      options_.fleet_change_interval +
      options_.fleet_change_per_device *
          static_cast<int64_t>(registry_.devices().size());
  if (!fleet_changed_ || (!force && now - last_fleet_change_ < interval)) {
    return;
  }
  fleet_changed_ = false;
  last_fleet_change_ = now;
  v1::DispatchEvent event;
  v1::ListDevicesResponse list = ListDevices();
  event.mutable_fleet_change()->mutable_devices()->Swap(list.mutable_devices());
  std::vector<StreamId> streams;
  for (const auto& [id, server] : servers_) {
    if (server.stream) streams.push_back(*server.stream);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    // The last takes it whole: of thousands of devices a copy costs time.
    const bool last = i + 1 == streams.size();
    Send(streams[i], last ? std::move(event) : event);
  }
}

void TrackerCore::ReportWaits() {
  const std::vector<DispatchQueue::Waiting> waiting = queue_.Summary();
  if (waiting.empty() && !waits_changed_) return;
  waits_changed_ = false;
  std::map<MatchKey, std::string> reasons;
  std::map<std::string, v1::WaitReport> reports;
  for (const DispatchQueue::Waiting& entry : waiting) {
    std::string& reason = reasons[entry.key];
    if (reason.empty()) reason = WhyWaiting(entry.key);
    v1::WaitReport& report = reports[entry.job.server_id];
    auto same =
        std::find_if(report.mutable_jobs()->begin(),
                     report.mutable_jobs()->end(), [&](const v1::JobWait& job) {
                       return job.job_id() == entry.job.job_id &&
                              job.device_class() == entry.key.device_class;
                     });
    if (same != report.mutable_jobs()->end()) {
      same->set_queued(same->queued() + entry.count);
      continue;
    }
    v1::JobWait& job = *report.add_jobs();
    job.set_job_id(entry.job.job_id);
    job.set_device_class(entry.key.device_class);
    job.set_queued(entry.count);
    job.mutable_reason()->set_text(reason);
  }
  for (auto& [id, server] : servers_) {
    if (!server.stream) continue;
    v1::DispatchEvent event;
    *event.mutable_wait_report() = reports[id];
    std::string text = event.SerializeAsString();
    if (text == server.last_wait_report) continue;
    server.last_wait_report = std::move(text);
    Send(*server.stream, std::move(event));
  }
}

std::string TrackerCore::WhyWaiting(const MatchKey& key) const {
  if (!store_error_.empty()) {
    return absl::StrCat(
        "the tracker cannot write its state and sends no work: ", store_error_);
  }
  if (buffer_full_) {
    return absl::StrCat(results_.size(),
                        " results wait for a server's commit; boards get no "
                        "new work until it takes them");
  }
  if (StillHeldBack(key.device_class)) {
    return absl::StrCat("waiting for ", unreported_holders_.size(),
                        " agent(s) to report after the tracker's restart");
  }
  if (const std::string brake = brake_.Why(key.device_class); !brake.empty()) {
    return absl::StrCat("no work for ", key.device_class, ": ", brake,
                        "; it goes on ten minutes after that, or by: regatta "
                        "device release --class ",
                        key.device_class);
  }
  const SteadyTime now = clock_.Steady();
  std::vector<BoardView> boards;
  for (const auto& [id, device] : registry_.devices()) {
    if (device.info.device_class() != key.device_class) continue;
    const Agent& agent = registry_.agents().find(device.agent_id)->second;
    BoardView board;
    board.device_id = id;
    board.key = device.key;
    board.presence = agent.presence;
    board.silent = now - agent.last_seen;
    board.stuck = agent.loop.stuck();
    board.credit = device.info.credit();
    board.load = leases_.Load(agent.id, id);
    board.health = device.info.health();
    board.refusal = device.refusal;
    board.waits_for_builder = WaitsForBuilder(agent, device);
    const v1::DeviceStanding& standing = *standings_.Find(id);
    board.obstacle = ObstacleOf(standing);
    if (board.obstacle.empty() && standing.trust() == v1::TRUST_UNKNOWN &&
        HasCanary(device)) {
      board.obstacle = "to be proven by a canary";
    }
    boards.push_back(std::move(board));
  }
  return WaitText(key, boards);
}

}  // namespace regatta

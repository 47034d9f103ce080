// TrackerCore: deadlines, and what people and servers are told.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "proto/outcome_names.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

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
  if (!registry_.unreported().empty() &&
      now - started_ >= options_.restart_window) {
    const std::set<std::string> missing = registry_.unreported();
    for (const std::string& id : missing) {
      Agent& agent = *registry_.FindAgent(id);
      registry_.SetUnreported(agent, false);
      LookSoon(agent);
    }
    MarkAllDirty();
  }
  LookAtDue(now);
  ExpireLeases(now);
  AdvanceHolds(now);
  AdvanceCanaries(now);
  AdvancePower(now);
  for (const std::string& device_class : brake_.Due(now)) {
    LiftBrake(device_class, "ten minutes have passed");
  }
  // A free device may have been kept for work while a better one was there.
  for (const MatchKey& key : queue_.Keys()) {
    if (!registry_.Free(key).empty()) dirty_.insert(key);
  }
  if (!store_error_.empty()) MarkAllDirty();
  FlushStore();
  SettleCancelled(now);
  DropAwayServers(now);
  relay_.Tick();
  FlushRelay();
  StartCanaries();
  DispatchDirty();
  ReportFleet();
  if (now - last_wait_report_ >= options_.wait_report_interval) {
    last_wait_report_ = now;
    ReportWaits();
  }
}

void TrackerCore::ExpireLeases(SteadyTime now) {
  for (const std::string& id : leases_.TakeExpired(now)) {
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
                  << LogAgent(agent.id) << "the lease of " << id << " ran out";
    LoseLease(id, absl::StrCat("the lease of agent ", agent.id, " ran out"));
  }
  std::vector<std::string> unwanted;
  for (const std::string& id : orphans_) {
    if (!MayBeWanted(id)) unwanted.push_back(id);
  }
  for (const std::string& id : unwanted) RevokeLease(id);
}

void TrackerCore::FlushStore() {
  std::vector<KnownAgent> known;
  for (const std::string& id : dirty_agents_) {
    const Agent& agent = *registry_.FindAgent(id);
    const int64_t silent_ms =
        absl::ToInt64Milliseconds(clock_.Steady() - agent.last_seen);
    known.push_back(ToKnown(agent, registry_, WallMs() - silent_ms));
  }
  // Before their agents: what the store lists was admitted.
  absl::Status status = standings_.Flush();
  if (status.ok() && known.empty() && store_error_.empty()) return;
  if (status.ok()) status = store_.Put(known);
  if (!status.ok() && store_error_.empty()) LOG(kError) << status.message();
  store_error_ = std::string(status.message());
  if (status.ok()) dirty_agents_.clear();
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
  } else if (agent.session && agent.devices_follow) {
    state = "waiting";  // what is known of it is from before
  } else if (IsDraining(device.info.health())) {
    state = "draining";
  } else if (standing.trust() == v1::TRUST_UNKNOWN && HasCanary(device) &&
             !WaitsForBuilder(agent, device)) {
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
    return absl::StrCat("waiting for ", registry_.unreported().size(),
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
  for (const std::string& id : registry_.OfClass(key.device_class)) {
    const Device& device = registry_.devices().find(id)->second;
    const Agent& agent = registry_.agents().find(device.agent_id)->second;
    BoardView board;
    board.device_id = id;
    board.key = device.key;
    board.presence = agent.presence;
    board.silent = now - agent.last_seen;
    board.not_free = WhyNotFree(agent, device, leases_.Load(agent.id, id), now);
    board.health = device.info.health();
    board.refusal = device.refusal;
    board.obstacle = ObstacleOf(*standings_.Find(id));
    boards.push_back(std::move(board));
  }
  return WaitText(key, boards);
}

}  // namespace regatta

// TrackerCore: what an agent that connects holds against what it was given.
#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tracker/tracker_core.h"

namespace regatta {

void TrackerCore::Reconcile(Agent& agent, const v1::Hello& hello,
                            bool board_failed, v1::Welcome* welcome) {
  std::set<std::string> continued;
  for (const v1::HeldAssignment& held : hello.held()) {
    v1::HeldVerdict* verdict = welcome->add_verdicts();
    verdict->set_assignment_id(held.assignment_id());
    verdict->set_verdict(Judge(agent, held));
    verdict->set_lease_epoch(held.lease_epoch());
    if (verdict->verdict() == v1::VERDICT_CONTINUE) {
      verdict->set_lease_ms(absl::ToInt64Milliseconds(options_.lease));
      continued.insert(held.assignment_id());
    }
  }
  const SteadyTime now = clock_.Steady();
  for (const std::string& id : leases_.OfAgent(agent.id)) {
    if (continued.contains(id)) continue;
    Lease& lease = *leases_.Find(id);
    if (board_failed) {
      LoseLease(id, absl::StrCat("the board of agent ", agent.id, " rebooted"),
                /*board_failed=*/true);
    } else if (hello.spooled_results() > 0 && lease.accepted) {
      leases_.Until(lease,
                    std::min(lease.deadline, now + options_.spool_grace));
    } else {
      LoseLease(id, absl::StrCat("agent ", agent.id, " came back without it"));
    }
  }
}

v1::Verdict TrackerCore::Judge(Agent& agent, const v1::HeldAssignment& held) {
  if (!Holds(agent, held.assignment_id(), held.lease_epoch(),
             held.lease_proof())) {
    return v1::VERDICT_ABANDON;
  }
  if (Lease* lease = leases_.Find(held.assignment_id())) {
    if (lease->agent_id != agent.id || lease->epoch != held.lease_epoch() ||
        lease->attempt != held.attempt()) {
      return v1::VERDICT_ABANDON;
    }
    lease->accepted = true;
    leases_.Until(*lease, clock_.Steady() + options_.lease);
    return v1::VERDICT_CONTINUE;
  }
  if (WorkItem* work = FindWork(held.assignment_id())) {
    if (work->state == WorkItem::State::kFinished) {
      return work->finished_by == agent.id ? v1::VERDICT_CONTINUE
                                           : v1::VERDICT_ABANDON;
    }
    if (work->dispatched) return v1::VERDICT_ABANDON;
    Adopt(agent, held, work);
    return v1::VERDICT_CONTINUE;
  }
  if (!MayBeWanted(held.assignment_id())) return v1::VERDICT_ABANDON;
  Adopt(agent, held, nullptr);
  return v1::VERDICT_CONTINUE;
}

void TrackerCore::Adopt(Agent& agent, const v1::HeldAssignment& held,
                        WorkItem* work) {
  Lease lease;
  lease.assignment_id = held.assignment_id();
  lease.agent_id = agent.id;
  lease.attempt = held.attempt();
  lease.epoch = held.lease_epoch();
  lease.accepted = true;
  lease.deadline = clock_.Steady() + options_.lease;
  if (agent.device_ids.contains(held.device_id())) {
    lease.device_id = held.device_id();
  } else if (agent.device_ids.size() == 1) {
    lease.device_id = *agent.device_ids.begin();
  }
  leases_.Add(lease);
  agent.loop.Dispatched(clock_.Steady());
  agent.holds_stored = true;
  if (work == nullptr) {
    orphans_.insert(lease.assignment_id);
    return;
  }
  queue_.Remove(work->entry(), clock_.Steady());
  queue_.RunsAlready(work->entry(), clock_.Steady());
  work->state = WorkItem::State::kLeased;
  work->dispatched = true;
  work->attempt = std::max(work->attempt, lease.attempt);
  waits_changed_ = true;
}

bool TrackerCore::MayBeWanted(std::string_view assignment_id) const {
  const std::string_view server_id = ServerOf(assignment_id);
  if (server_id.empty()) return false;
  if (server_id == kCanaryServer) return canary_runs_.contains(assignment_id);
  auto server = servers_.find(server_id);
  if (server == servers_.end() || !server->second.stream) return true;
  return clock_.Steady() < server->second.since + options_.orphan_grace;
}

}  // namespace regatta

// TrackerCore: work, leases and who gets what.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "tracker/lease_proof.h"
#include "tracker/tracker_core.h"

namespace regatta {

WorkItem* TrackerCore::FindWork(std::string_view assignment_id) {
  auto it = works_.find(assignment_id);
  return it == works_.end() ? nullptr : &it->second;
}

void TrackerCore::Enqueue(WorkItem& work) {
  work.state = WorkItem::State::kQueued;
  queue_.Push(work.entry(), clock_.Steady());
  dirty_.insert(work.key());
  waits_changed_ = true;
}

void TrackerCore::Requeue(WorkItem& work) {
  if (!work.AllReported()) {
    Enqueue(work);
    return;
  }
  work.state = WorkItem::State::kFinished;
  waits_changed_ = true;
}

void TrackerCore::RequeueLost(WorkItem& work, const std::string& device_id,
                              const std::string& why, bool device_fault) {
  if (work.AllReported()) {
    Requeue(work);
    return;
  }
  work.loss = why;
  work.loss_device = device_id;
  work.loss_is_fault = device_fault;
  if (!device_id.empty()) work.failed_devices.insert(device_id);
  if (device_fault && !device_id.empty()) {
    Blame(work, Suspects(work), device_id, why);
    if (work.AllReported()) {
      Requeue(work);
      return;
    }
  }
  if (work.attempt >= options_.max_attempts) {
    GiveUp(work);
    return;
  }
  ++work.attempt;
  Enqueue(work);
}

void TrackerCore::GiveUp(WorkItem& work) {
  work.state = WorkItem::State::kFinished;
  waits_changed_ = true;
  ++counts_.given_up;
  LOG(kWarning) << LogEvent("work_given_up") << LogDevice(work.loss_device)
                << LogReason(work.loss) << work.assignment_id
                << " given up after " << work.attempt
                << " attempts: " << work.loss;
  ReportUnfinished(
      work,
      work.loss_is_fault ? v1::OUTCOME_DEVICE_FAULT : v1::OUTCOME_AGENT_LOST,
      absl::StrCat(work.attempt, " attempts on ",
                   std::max<size_t>(work.failed_devices.size(), 1),
                   " device(s) ended without a result; the last: ", work.loss));
}

void TrackerCore::ReportUnfinished(WorkItem& work, v1::Outcome outcome,
                                   const std::string& detail) {
  std::vector<int> unfinished;
  for (int i = 0; i < work.work.trials_size(); ++i) {
    if (work.trials[i].reported_attempt > 0 || work.trials[i].committed) {
      continue;
    }
    unfinished.push_back(i);
  }
  ReportTrials(work, unfinished, outcome, detail);
}

void TrackerCore::ReportTrials(WorkItem& work, const std::vector<int>& trials,
                               v1::Outcome outcome, const std::string& detail) {
  std::vector<v1::TrialResult> results;
  for (int i : trials) {
    v1::TrialResult result;
    *result.mutable_spec() = work.work.trials(i);
    result.set_outcome(outcome);
    result.set_detail(detail);
    result.set_attempt(work.attempt);
    result.set_device_id(work.loss_device);
    result.set_device_class(work.work.device_class());
    result.set_provenance("tracker");
    work.trials[i].reported_attempt = work.attempt;
    results_.Add(work.server_id, "", result);
    results.push_back(std::move(result));
  }
  std::vector<const v1::TrialResult*> pointers;
  for (const v1::TrialResult& result : results) pointers.push_back(&result);
  Forward(work.server_id, pointers);
}

void TrackerCore::EndLease(const std::string& assignment_id) {
  const Lease lease = *leases_.Find(assignment_id);
  leases_.Remove(assignment_id);
  orphans_.erase(assignment_id);
  canary_runs_.erase(assignment_id);
  queue_.Ended(assignment_id, clock_.Steady());
  if (Device* device = registry_.FindDevice(lease.device_id)) {
    device->idle_order = ++idle_order_;
    if (device->canary == assignment_id) device->canary.clear();
  }
  Agent& agent = *registry_.FindAgent(lease.agent_id);
  agent.last_leased = clock_.Steady();
  Reindex(agent);
}

void TrackerCore::RevokeLease(const std::string& assignment_id) {
  const Agent& agent =
      *registry_.FindAgent(leases_.Find(assignment_id)->agent_id);
  if (agent.session) {
    v1::TrackerMessage message;
    message.mutable_cancel()->add_assignment_ids(assignment_id);
    Send(*agent.session, std::move(message));
  }
  EndLease(assignment_id);
}

void TrackerCore::LoseLease(const std::string& assignment_id,
                            const std::string& why, bool board_failed) {
  const Lease lease = *leases_.Find(assignment_id);
  EndLease(assignment_id);
  WorkItem* work = FindWork(assignment_id);
  if (work == nullptr) return;
  const bool excused = !board_failed && clock_.Steady() < lease.excused_until;
  if (lease.accepted && !excused) {
    if (!board_failed && !lease.device_id.empty()) {
      RememberLoss(*work, lease.device_id);
    }
    RequeueLost(*work, lease.device_id, why, board_failed);
  } else {
    Requeue(*work);
  }
}

bool TrackerCore::StillHeldBack(std::string_view device_class) const {
  return registry_.HasUnreported(device_class);
}

bool TrackerCore::Available(const Agent& agent) const {
  return agent.session && agent.presence == v1::PRESENCE_ONLINE &&
         !agent.loop.stuck() && !agent.devices_follow;
}

NotFree TrackerCore::WhyNoJobs(const Device& device) const {
  const v1::DeviceStanding& standing =
      *standings_.Find(device.info.device_id());
  if (standing.operator_state() != v1::OPERATOR_STATE_NORMAL ||
      (standing.trust() != v1::TRUST_HEALTHY &&
       standing.trust() != v1::TRUST_UNKNOWN)) {
    return NotFree::kHeld;
  }
  if (!brake_.Why(device.info.device_class()).empty()) return NotFree::kBraked;
  if (IsSwitched(device)) return NotFree::kSwitched;
  if (standing.canaries_owed() > 0 && HasCanary(device)) {
    return NotFree::kUnproven;
  }
  return NotFree::kFree;
}

NotFree TrackerCore::WhyNotFree(const Agent& agent, const Device& device,
                                int load, SteadyTime now) const {
  const NotFree no_jobs = WhyNoJobs(device);
  if (no_jobs != NotFree::kFree && no_jobs != NotFree::kUnproven) {
    return no_jobs;
  }
  if (agent.session && agent.loop.stuck()) return NotFree::kStuck;
  if (!Available(agent)) return NotFree::kAway;
  // One that is away has yet to come before it can be proven.
  if (no_jobs != NotFree::kFree) {
    return WaitsForBuilder(agent, device) ? NotFree::kNoBuilder : no_jobs;
  }
  if (IsDraining(device.info.health()) || device.info.credit() == 0) {
    return NotFree::kDraining;
  }
  if (WaitsForBuilder(agent, device)) return NotFree::kNoBuilder;
  // Times a run: what is only to be built ahead waits.
  const bool quiet = now - agent.last_seen < agent.quiet;
  if (load >= device.info.credit() || (quiet && load > 0)) {
    return NotFree::kBusy;
  }
  return now < device.not_before ? NotFree::kResting : NotFree::kFree;
}

void TrackerCore::Reindex(Agent& agent) {
  const SteadyTime now = clock_.Steady();
  for (const std::string& id : agent.device_ids) {
    Device& device = *registry_.FindDevice(id);
    const int load = leases_.Load(agent.id, id);
    const NotFree why = WhyNotFree(agent, device, load, now);
    registry_.SetServing(device, TakesMoreSoon(why));
    if (why == NotFree::kFree) {
      registry_.SetFree(device, load);
      dirty_.insert(device.key);
    } else {
      registry_.SetFree(device, std::nullopt);
    }
    if (Available(agent) && !IsDraining(device.info.health()) &&
        WantsCanary(agent, device, load, now)) {
      wants_canary_.insert(id);
    }
    RefreshState(device, agent);
  }
  Watch(agent);
}

bool TrackerCore::TakesMore(const Device& device) const {
  const Agent& agent = registry_.agents().find(device.agent_id)->second;
  return TakesMoreSoon(
      WhyNotFree(agent, device, leases_.Load(agent.id, device.info.device_id()),
                 clock_.Steady()));
}

int TrackerCore::Objection(const WorkItem& work,
                           const std::string& device_id) const {
  if (work.failed_devices.contains(device_id)) return 2;
  const auto& avoid = work.work.avoid_device_ids();
  return std::find(avoid.begin(), avoid.end(), device_id) != avoid.end() ? 1
                                                                         : 0;
}

Device* TrackerCore::ChooseDevice(const WorkItem& work, const MatchKey& key) {
  const FreeDevice* best = nullptr;
  int least = 3;
  for (const FreeDevice& free : registry_.Free(key)) {
    const int objection = Objection(work, free.device_id);
    if (objection >= least) continue;
    best = &free;
    least = objection;
    if (least == 0) break;
  }
  if (best == nullptr) return nullptr;
  if (least > 0) {
    // Wait for a device that is here and only busy.
    for (const std::string& id : registry_.Matching(key)) {
      if (Objection(work, id) < least && TakesMore(*registry_.FindDevice(id))) {
        return nullptr;
      }
    }
  }
  return registry_.FindDevice(best->device_id);
}

void TrackerCore::MarkAllDirty() {
  for (const MatchKey& key : queue_.Keys()) dirty_.insert(key);
  waits_changed_ = true;
}

void TrackerCore::DispatchDirty() {
  const std::set<MatchKey> dirty = std::exchange(dirty_, {});
  if (buffer_full_) return;
  std::vector<std::string> placed;
  for (const MatchKey& key : dirty) {
    if (queue_.Empty(key) || StillHeldBack(key.device_class)) continue;
    const auto place = [&](const std::string& id) {
      WorkItem& work = *FindWork(id);
      Device* device = ChooseDevice(work, key);
      if (device == nullptr) return false;
      work.state = WorkItem::State::kLeased;
      leases_.Add({id, device->agent_id, device->info.device_id(), work.attempt,
                   leases_.NewEpoch(), /*accepted=*/false,
                   clock_.Steady() + options_.accept});
      Agent& agent = *registry_.FindAgent(device->agent_id);
      agent.loop.Dispatched(clock_.Steady());
      Reindex(agent);
      placed.push_back(id);
      return true;
    };
    const int64_t credit = registry_.CreditOfClass(key.device_class);
    while (!registry_.Free(key).empty() &&
           queue_.PlaceNext(key, credit, clock_.Steady(), place)) {
    }
  }
  // Marked by the placing itself; what is left has no device to go to.
  dirty_.clear();
  if (placed.empty()) return;
  waits_changed_ = true;
  if (RecordHolders(placed)) {
    for (const std::string& id : placed) SendAssign(id);
    return;
  }
  for (const std::string& id : placed) {
    EndLease(id);
    Requeue(*FindWork(id));
  }
  dirty_.clear();  // tried again by the next tick
}

// After a restart the tracker must know who may hold work, so this is durable
// before the first Assign leaves.
bool TrackerCore::RecordHolders(
    const std::vector<std::string>& assignment_ids) {
  std::vector<Agent*> holders;
  for (const std::string& id : assignment_ids) {
    Agent* agent = registry_.FindAgent(leases_.Find(id)->agent_id);
    if (agent->holds_stored) continue;
    agent->holds_stored = true;
    holders.push_back(agent);
  }
  if (holders.empty()) return true;
  std::vector<KnownAgent> known;
  for (const Agent* agent : holders) {
    known.push_back(ToKnown(*agent, registry_, WallMs()));
  }
  absl::Status status = standings_.Flush();
  if (status.ok()) status = store_.Put(known);
  store_error_ = std::string(status.message());
  if (status.ok()) return true;
  LOG(kError) << "no work is sent to boards: " << status.message();
  for (Agent* agent : holders) agent->holds_stored = false;
  return false;
}

v1::Assignment TrackerCore::MakeAssignment(const Lease& lease,
                                           v1::AssignmentMode mode) const {
  v1::Assignment assignment;
  assignment.set_assignment_id(lease.assignment_id);
  assignment.set_mode(mode);
  assignment.set_attempt(lease.attempt);
  assignment.set_lease_epoch(lease.epoch);
  assignment.set_lease_proof(LeaseProof(store_.lease_secret(), lease.agent_id,
                                        lease.assignment_id, lease.epoch));
  assignment.set_lease_ms(absl::ToInt64Milliseconds(options_.lease));
  assignment.set_device_id(lease.device_id);
  return assignment;
}

void TrackerCore::SendAssign(const std::string& assignment_id) {
  const Lease& lease = *leases_.Find(assignment_id);
  WorkItem& work = *FindWork(assignment_id);
  work.dispatched = true;
  ++counts_.assignments;
  v1::TrackerMessage message;
  v1::Assignment& assignment = *message.mutable_assign()->mutable_assignment();
  assignment = MakeAssignment(lease, work.work.mode());
  // Trials that are timed against each other run together or not at all.
  const bool whole = work.work.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE;
  for (int i = 0; i < work.work.trials_size(); ++i) {
    const TrialState& state = work.trials[i];
    if (!whole && (state.reported_attempt > 0 || state.committed)) continue;
    *assignment.add_trials() = work.work.trials(i);
  }
  Send(*registry_.FindAgent(lease.agent_id)->session, std::move(message));
}

}  // namespace regatta

// TrackerCore: canaries, which prove boards before they get the work of jobs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// Rounds in a row that fail before a board is quarantined.
constexpr int kFailuresInARow = 3;
// Rounds in a row that say nothing, after which the board goes without.
constexpr int kVoidsInARow = 3;
// Rounds in a row that a busy machine disturbs, after which one counts as slow;
// each waits twice as long as the one before: a minute in all.
constexpr int kDisturbedInARow = 5;
// A full spool or a drain passes; an agent that never takes one has none.
constexpr int kRefusalsInARow = 20;
// A reset proves less than an operator: so many rounds end a quarantine then.
constexpr int kRoundsAfterReset = 3;

}  // namespace

bool TrackerCore::HasCanary(const Device& device) const {
  return device.no_canary.empty() && canaries_.Has(device.key, device.info);
}

bool TrackerCore::WantsCanary(const Agent& agent, const Device& device,
                              int load, SteadyTime now) const {
  const v1::DeviceStanding& standing =
      *standings_.Find(device.info.device_id());
  return standing.canaries_owed() > 0 && device.canary.empty() &&
         !IsSwitched(device) &&
         standing.operator_state() == v1::OPERATOR_STATE_NORMAL &&
         standing.trust() != v1::TRUST_PENDING &&
         standing.trust() != v1::TRUST_BROKEN && HasCanary(device) &&
         load < device.info.credit() && now >= device.not_before &&
         now >= device.canary_after && !WaitsForBuilder(agent, device);
}

void TrackerCore::OfferCanaries(const v1::Canaries& canaries) {
  canaries_.Offer(canaries);
  std::set<std::string> classes;
  for (const v1::Canary& canary : canaries.canaries()) {
    classes.insert(canary.trial().device_class());
  }
  for (const std::string& name : classes) {
    for (const std::string& device_id : registry_.OfClass(name)) {
      Device& device = *registry_.FindDevice(device_id);
      device.no_canary.clear();
      device.canary_voids = 0;
      Agent& agent = *registry_.FindAgent(device.agent_id);
      Reindex(agent);
      LookSoon(agent);
    }
  }
}

void TrackerCore::Unprove(const std::string& device_id,
                          const std::string& reason) {
  const v1::DeviceStanding* known = standings_.Find(device_id);
  if (known == nullptr) return;
  v1::DeviceStanding standing = *known;
  std::string what;
  if (standing.trust() == v1::TRUST_HEALTHY ||
      standing.trust() == v1::TRUST_UNKNOWN) {
    if (standing.trust() == v1::TRUST_HEALTHY) what = "to be proven";
    SetTrust(v1::TRUST_UNKNOWN, reason, kByTracker, WallMs(), &standing);
    standing.set_canaries_owed(std::max(1, standing.canaries_owed()));
  } else {
    return;
  }
  standings_.Set(std::move(standing), ClassOf(device_id), what, reason);
  FollowStanding(device_id);
}

void TrackerCore::StartCanaries() {
  const std::set<std::string> wanted = std::exchange(wants_canary_, {});
  for (const std::string& device_id : wanted) {
    Device* device = registry_.FindDevice(device_id);
    if (device == nullptr) continue;
    Agent& agent = *registry_.FindAgent(device->agent_id);
    const int load = leases_.Load(agent.id, device_id);
    if (!Available(agent) ||
        !WantsCanary(agent, *device, load, clock_.Steady())) {
      continue;
    }
    const std::string id =
        absl::StrCat(kCanaryServer, "/", device_id, "/", store_.tracker_epoch(),
                     "-", ++canary_number_);
    const std::vector<v1::TrialSpec> trials =
        canaries_.Round(device->key, device->info, id);
    const Lease& lease =
        leases_.Add({id, agent.id, device_id, /*attempt=*/1, leases_.NewEpoch(),
                     /*accepted=*/false, clock_.Steady() + options_.accept});
    canary_runs_[id] = {device_id, clock_.Steady() + options_.canary_limit, {}};
    device->canary = id;
    agent.loop.Dispatched(clock_.Steady());
    v1::TrackerMessage message;
    v1::Assignment& assignment =
        *message.mutable_assign()->mutable_assignment();
    assignment = MakeAssignment(lease, v1::ASSIGNMENT_MODE_SCREEN);
    for (const v1::TrialSpec& trial : trials) {
      *assignment.add_trials() = trial;
    }
    Send(*agent.session, std::move(message));
    Reindex(agent);
  }
}

void TrackerCore::OnCanaryResult(Agent& agent,
                                 const v1::SpooledResult& spooled) {
  const std::string& id = spooled.assignment_id();
  const auto found = canary_runs_.find(id);
  const Lease* lease = leases_.Find(id);
  if (found == canary_runs_.end() || lease == nullptr ||
      lease->agent_id != agent.id ||
      lease->epoch != spooled.result().lease_epoch() ||
      !spooled.result().spec().trial_id().starts_with(id + "/")) {
    return;  // of a round that is over
  }
  CanaryRun& run = found->second;
  const Device& device = *registry_.FindDevice(run.device_id);
  v1::DeviceStanding standing = *standings_.Find(run.device_id);
  CanaryJudgement judgement =
      JudgeCanary(spooled.result(), device.info, &standing);
  standings_.Set(std::move(standing), device.info.device_class(), "", "");
  if (judgement.verdict > run.worst.verdict) run.worst = std::move(judgement);
  if (!spooled.last()) return;
  const CanaryRun ended = run;
  EndLease(id);  // ends the run
  EndCanary(ended.device_id, ended.worst);
}

void TrackerCore::EndCanary(const std::string& device_id,
                            const CanaryJudgement& judgement) {
  switch (judgement.verdict) {
    case CanaryVerdict::kPassed:
      CanaryPassed(device_id);
      break;
    case CanaryVerdict::kVoid:
      CanaryVoid(device_id, judgement.why);
      break;
    case CanaryVerdict::kDisturbed:
      CanaryDisturbed(device_id, judgement);
      break;
    case CanaryVerdict::kSlow:
    case CanaryVerdict::kFailed:
      CanaryFailed(device_id, judgement);
      break;
  }
  FollowStanding(device_id);
}

void TrackerCore::CanaryPassed(const std::string& device_id) {
  Device& device = *registry_.FindDevice(device_id);
  const SteadyTime now = clock_.Steady();
  device.canary_voids = device.canary_disturbed = 0;
  device.canary_passed = now;
  device.canary_due = now + options_.canary_interval;
  device.trials_since_canary = 0;
  v1::DeviceStanding standing = *standings_.Find(device_id);
  standing.set_canary_failures(0);
  standing.set_canaries_owed(std::max(0, standing.canaries_owed() - 1));
  std::string what;
  if (standing.canaries_owed() == 0 && standing.trust() != v1::TRUST_HEALTHY) {
    what = "proven";
    SetTrust(v1::TRUST_HEALTHY, "canaries passed", kByTracker, WallMs(),
             &standing);
    faults_.Reset(device_id);
  }
  standings_.Set(std::move(standing), device.info.device_class(), what,
                 "canaries passed");
}

void TrackerCore::CanaryVoid(const std::string& device_id,
                             const std::string& why) {
  Device& device = *registry_.FindDevice(device_id);
  device.canary_after = clock_.Steady() + options_.canary_retry;
  if (++device.canary_voids < kVoidsInARow) return;
  device.no_canary = why;
  standings_.Note(device_id, device.info.device_class(), "goes unproven", why);
}

void TrackerCore::CanaryDisturbed(const std::string& device_id,
                                  const CanaryJudgement& judgement) {
  Device& device = *registry_.FindDevice(device_id);
  if (device.canary_disturbed == kDisturbedInARow) {
    return CanaryFailed(device_id, judgement);
  }
  device.canary_after =
      clock_.Steady() + options_.canary_retry * (1 << device.canary_disturbed);
  ++device.canary_disturbed;
  standings_.Note(device_id, device.info.device_class(), "canary disturbed",
                  judgement.why);
}

void TrackerCore::CanaryRefused(Device& device) {
  if (++device.canary_refusals < kRefusalsInARow) {
    device.canary_after = clock_.Steady() + options_.canary_retry;
    return;
  }
  device.no_canary =
      absl::StrCat("the agent refuses canaries: ", device.refusal);
  standings_.Note(device.info.device_id(), device.info.device_class(),
                  "goes unproven", device.no_canary);
}

void TrackerCore::CanaryFailed(const std::string& device_id,
                               const CanaryJudgement& judgement) {
  Device& device = *registry_.FindDevice(device_id);
  const std::string device_class = device.info.device_class();
  const bool braked = !brake_.Why(device_class).empty();
  device.canary_disturbed = 0;
  device.canary_after =
      clock_.Steady() + (braked ? absl::Minutes(1) : options_.canary_retry);
  v1::DeviceStanding standing = *standings_.Find(device_id);
  if (standing.trust() == v1::TRUST_QUARANTINED) {
    // The reset did not help.
    standing.set_canaries_owed(0);
    standings_.Set(std::move(standing), device_class, "stays quarantined",
                   judgement.why);
    return;
  }
  standing.set_canary_failures(standing.canary_failures() + 1);
  const bool enough = standing.canary_failures() >= kFailuresInARow;
  if (enough && judgement.verdict == CanaryVerdict::kSlow &&
      !HasProvenPeer(device)) {
    // Nobody to compare with: more likely the machine's new speed than a fault.
    ForgetCanaryTimes(&standing);
    standing.set_canary_failures(0);
    standings_.Set(std::move(standing), device_class, "drifted",
                   absl::StrCat(judgement.why,
                                "; no other board of its class "
                                "says otherwise: the new time "
                                "counts from now on"));
    return;
  }
  if (enough) {
    standing.set_canary_failures(0);
    standings_.Set(std::move(standing), device_class, "", "");
    Quarantine(device_id, absl::StrCat(kFailuresInARow,
                                       " canaries in a row failed; the "
                                       "last: ",
                                       judgement.why));
    return;
  }
  SetTrust(v1::TRUST_UNKNOWN, judgement.why, kByTracker, WallMs(), &standing);
  standing.set_canaries_owed(std::max(1, standing.canaries_owed()));
  standings_.Set(std::move(standing), device_class, "canary failed",
                 judgement.why);
}

bool TrackerCore::HasProvenPeer(const Device& device) const {
  const SteadyTime now = clock_.Steady();
  for (const std::string& id : registry_.OfClass(device.info.device_class())) {
    if (id == device.info.device_id() ||
        standings_.Find(id)->trust() != v1::TRUST_HEALTHY) {
      continue;
    }
    const Device& other = registry_.devices().find(id)->second;
    if (other.canary_passed && now - *other.canary_passed < absl::Hours(1)) {
      return true;
    }
  }
  return false;
}

void TrackerCore::AdvanceCanaries(SteadyTime now) {
  std::vector<std::string> overdue;
  for (auto& [id, run] : canary_runs_) {
    const Device& device = *registry_.FindDevice(run.device_id);
    if (WaitsForBuilder(*registry_.FindAgent(device.agent_id), device)) {
      // Nothing that the board could do; its agent ends it in time.
      run.deadline = now + options_.canary_limit;
    }
    if (now >= run.deadline) overdue.push_back(id);
  }
  for (const std::string& id : overdue) {
    const std::string device_id = canary_runs_.at(id).device_id;
    RevokeLease(id);
    EndCanary(device_id,
              {CanaryVerdict::kFailed,
               absl::StrCat("a canary did not end in ",
                            absl::FormatDuration(options_.canary_limit))});
  }
}

void TrackerCore::AfterReset(const std::string& device_id,
                             const std::string& reason) {
  v1::DeviceStanding standing = *standings_.Find(device_id);
  if (Device* device = registry_.FindDevice(device_id)) {
    device->canary_after = clock_.Steady();
  }
  if (standing.trust() != v1::TRUST_QUARANTINED) {
    Unprove(device_id, reason);
    return;
  }
  // What a person decided, a person takes back.
  if (standing.trust_standing().by() != kByTracker) return;
  standing.set_canaries_owed(kRoundsAfterReset);
  standings_.Set(std::move(standing), ClassOf(device_id), "on probation",
                 reason);
}

}  // namespace regatta

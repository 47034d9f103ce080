// TrackerCore: whose fault it is. A candidate that fails with two boards is
// blamed itself; a board that fails while others are well is quarantined; when
// many fail at once, neither is.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// A candidate is blamed once so many boards failed while it ran.
constexpr size_t kBoardsToBlame = 2;
// Losses remembered for a board whose reboot shows only when it is back.
constexpr size_t kKeptLosses = 16;
// After a canary has just passed, one more fault is the candidates'.
constexpr absl::Duration kJustProven = absl::Seconds(30);

}  // namespace

std::vector<int> TrackerCore::Suspects(const WorkItem& work) {
  std::vector<int> suspects;
  const bool together = work.work.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE;
  for (int i = 0; i < work.work.trials_size(); ++i) {
    if (work.trials[i].reported_attempt > 0 || work.trials[i].committed) {
      continue;
    }
    suspects.push_back(i);
    if (!together) break;  // they run in this order
  }
  return suspects;
}

void TrackerCore::Blame(WorkItem& work, const std::vector<int>& suspects,
                        const std::string& device_id, const std::string& why) {
  std::vector<int> guilty;
  std::set<std::string> boards;
  for (int i : suspects) {
    TrialState& trial = work.trials[i];
    if (trial.reported_attempt > 0 || trial.committed) continue;
    trial.failed_boards.insert(device_id);
    if (trial.failed_boards.size() < kBoardsToBlame) continue;
    guilty.push_back(i);
    boards = trial.failed_boards;
  }
  if (guilty.empty()) return;
  work.loss_device = device_id;
  ReportTrials(work, guilty, v1::OUTCOME_CRASHED,
               absl::StrCat("boards ", absl::StrJoin(boards, " and "),
                            " failed while it ran; the last: ", why));
  LOG(kWarning) << LogEvent("trial_blamed")
                << LogTrial(work.work.trials(guilty[0]).trial_id()) << "trial "
                << work.work.trials(guilty[0]).trial_id() << " of server "
                << work.server_id << " is blamed for " << boards.size()
                << " failing boards";
  if (work.state == WorkItem::State::kQueued && work.AllReported()) {
    queue_.Remove(work.entry(), clock_.Steady());
    Requeue(work);
  }
}

void TrackerCore::RememberLoss(const WorkItem& work,
                               const std::string& device_id) {
  std::vector<LostRun>& lost = lost_runs_[device_id];
  if (lost.size() >= kKeptLosses) lost.erase(lost.begin());
  lost.push_back({work.assignment_id, Suspects(work)});
}

void TrackerCore::OnReboot(Agent& agent, bool announced, bool mid_run) {
  const SteadyTime now = clock_.Steady();
  for (const std::string& id : agent.device_ids) {
    const std::vector<LostRun> lost = std::exchange(lost_runs_[id], {});
    lost_runs_.erase(id);
    const std::string reason =
        announced ? "rebooted as announced" : "rebooted unannounced";
    const bool switched = PowerProven(id);
    standings_.Note(id, ClassOf(id), kRebootedEvent,
                    switched    ? "its power was switched"
                    : announced ? "as announced"
                    : mid_run   ? "unannounced, while it ran a trial"
                                : "unannounced");
    AfterReset(id, reason);
    if (announced) continue;
    for (const LostRun& run : lost) {
      WorkItem* work = FindWork(run.assignment_id);
      if (work != nullptr && work->state != WorkItem::State::kFinished) {
        Blame(*work, run.suspects, id, absl::StrCat("board ", id, " rebooted"));
      }
    }
    faults_.Rebooted(id, now);
    if (mid_run || !lost.empty()) faults_.Add(id, /*fault=*/true);
    JudgeBoard(id);
  }
}

void TrackerCore::NoteTrial(const std::string& device_id, bool fault,
                            const std::string& why) {
  Device* device = registry_.FindDevice(device_id);
  if (device == nullptr) return;
  if (++device->trials_since_canary >= options_.canary_trials) {
    LookSoon(*registry_.FindAgent(device->agent_id));
  }
  faults_.Add(device_id, fault);
  if (!fault) return;
  standings_.Note(device_id, device->info.device_class(), "device failure",
                  why);
  const bool just_proven =
      device->canary_passed &&
      clock_.Steady() - *device->canary_passed < kJustProven;
  if (HasCanary(*device) && !just_proven) {
    Unprove(device_id, absl::StrCat("a device failure: ", why));
  }
  JudgeBoard(device_id, why);
}

void TrackerCore::JudgeBoard(const std::string& device_id,
                             const std::string& last_failure) {
  std::string why = faults_.WhyQuarantine(device_id, clock_.Steady());
  if (why.empty()) return;
  if (!last_failure.empty()) {
    absl::StrAppend(&why, "; the last: ", last_failure);
  }
  Quarantine(device_id, why);
}

bool TrackerCore::RetriedElsewhere(WorkItem& work, const Lease& lease,
                                   const v1::TrialResult& result, bool* news) {
  const std::string device_id = lease.device_id;
  bool other = false;
  for (const std::string& id : registry_.Matching(work.key())) {
    other |= id != device_id && !work.failed_devices.contains(id) &&
             TakesMore(*registry_.FindDevice(id));
    if (other) break;
  }
  for (int i = 0; i < work.work.trials_size(); ++i) {
    if (work.work.trials(i).trial_id() != result.spec().trial_id()) continue;
    TrialState& trial = work.trials[i];
    if (trial.reported_attempt > 0 || trial.committed) return false;
    if (!other && trial.failed_boards.empty()) return false;
    // The same report again says nothing more.
    *news = work.failed_devices.insert(device_id).second ||
            !trial.failed_boards.contains(device_id);
    if (*news) Blame(work, {i}, device_id, Brief(result.detail()));
    return true;
  }
  return false;
}

void TrackerCore::Quarantine(const std::string& device_id,
                             const std::string& why) {
  v1::DeviceStanding standing = *standings_.Find(device_id);
  if (standing.trust() == v1::TRUST_QUARANTINED ||
      standing.trust() == v1::TRUST_PENDING) {
    return;
  }
  const std::string device_class = ClassOf(device_id);
  const int boards = static_cast<int>(AgentsOfClass(device_class).size());
  faults_.Reset(device_id);
  if (brake_.TakeOut(device_class, standing.agent_id(), boards,
                     clock_.Steady())) {
    SetTrust(v1::TRUST_QUARANTINED, why, kByTracker, WallMs(), &standing);
    standing.set_canaries_owed(0);
    standings_.Set(std::move(standing), device_class, kQuarantinedEvent, why);
    LOG(kError) << LogEvent("device_quarantined") << LogDevice(device_id)
                << LogReason(why) << "device " << device_id
                << " is quarantined: " << why;
    FollowStanding(device_id);
    return;
  }
  SetTrust(v1::TRUST_UNKNOWN, why, kByTracker, WallMs(), &standing);
  standing.set_canaries_owed(std::max(1, standing.canaries_owed()));
  standings_.Set(std::move(standing), device_class, "not quarantined",
                 absl::StrCat("the brake of its class: ", why));
  const std::string text = absl::StrCat(
      "more than ", std::max(1, boards / 10), " of ", boards, " ", device_class,
      " boards would be quarantined within 10 min; the last: board ", device_id,
      ": ", why);
  if (brake_.Stop(device_class, text, clock_.Steady())) {
    LOG(kError) << "no work for class " << device_class << ": " << text;
    standings_.Note("", device_class, "stopped", text);
    ReindexClass(device_class);
  }
  FollowStanding(device_id);
}

void TrackerCore::LiftBrake(const std::string& device_class,
                            const std::string& why) {
  if (!brake_.Lift(device_class)) return;
  standings_.Note("", device_class, "goes on", why);
  for (const std::string& id : registry_.OfClass(device_class)) {
    Unprove(id, "its class was stopped");
  }
  ReindexClass(device_class);
}

std::set<std::string> TrackerCore::AgentsOfClass(
    const std::string& device_class) const {
  std::set<std::string> agents;
  for (const std::string& id : registry_.OfClass(device_class)) {
    agents.insert(registry_.devices().find(id)->second.agent_id);
  }
  return agents;
}

void TrackerCore::ReindexClass(const std::string& device_class) {
  for (const std::string& id : AgentsOfClass(device_class)) {
    Agent& agent = *registry_.FindAgent(id);
    Reindex(agent);
    Touch(agent);
  }
  waits_changed_ = true;
  MarkAllDirty();
}

void TrackerCore::RecallQuarantines() {
  const int64_t now_ms = WallMs();
  for (const v1::DeviceEvent& event : store_.Events()) {
    const absl::Duration age = absl::Milliseconds(now_ms - event.unix_ms());
    if (event.what() == kQuarantinedEvent && event.by() == kByTracker &&
        age >= absl::ZeroDuration() && age < ClassBrake::kWindow) {
      const v1::DeviceStanding* standing = standings_.Find(event.device_id());
      brake_.Recall(
          event.device_class(),
          standing == nullptr ? event.device_id() : standing->agent_id(),
          started_ + -age);
    }
  }
}

}  // namespace regatta

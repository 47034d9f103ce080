// Race and confirmation of a task.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"
#include "server/job/task_runner.h"

namespace regatta {

void TaskRunner::StartRound(v1::TrialKind kind, RoundCheckpoint round,
                            TaskPlan* plan) {
  std::vector<v1::TrialSpec> trials;
  for (RoundCheckpoint::Entry& entry : round.entries) {
    trials.push_back(MakeTrial(kind, entry.schedule));
    entry.trial_id = trials.back().trial_id();
  }
  round_results_.clear();
  checkpoint_.round = std::move(round);
  Send(std::move(trials), plan);
}

bool TaskRunner::RoundOpen() const { return !open_.empty(); }

const v1::TrialResult* TaskRunner::RoundResult(
    const RoundCheckpoint::Entry& entry) const {
  const auto found = round_results_.find(entry.trial_id);
  if (found == round_results_.end()) return nullptr;
  return IsCandidateOutcome(found->second.outcome()) ? &found->second : nullptr;
}

bool TaskRunner::RoundIsOneRun() const {
  const v1::TrialResult* first = nullptr;
  for (const auto& [id, result] : round_results_) {
    if (!IsCandidateOutcome(result.outcome())) continue;
    if (first == nullptr) first = &result;
    if (result.device_id() != first->device_id() ||
        result.boot_id() != first->boot_id() ||
        result.attempt() != first->attempt() ||
        result.lease_epoch() != first->lease_epoch()) {
      return false;
    }
  }
  return true;
}

void TaskRunner::RetryRound(const std::string& what) {
  checkpoint_.round.reset();
  round_results_.clear();
  if (++checkpoint_.round_attempts >= kRoundAttempts) {
    Pause(absl::StrCat("the ", what, " was lost ", kRoundAttempts,
                       " times; the last: ", results_.last_infrastructure()));
  }
}

absl::Status TaskRunner::AdvanceRace(TaskPort& port, TaskPlan* plan) {
  if (checkpoint_.round && RoundOpen()) return absl::OkStatus();
  if (checkpoint_.round) {
    std::vector<const v1::TrialResult*> ranked;
    bool answered = false;
    for (const RoundCheckpoint::Entry& entry : checkpoint_.round->entries) {
      const v1::TrialResult* result = RoundResult(entry);
      answered = answered || result != nullptr;
      if (result != nullptr && result->outcome() == v1::OUTCOME_OK &&
          result->time_ns() > 0) {
        ranked.push_back(result);
      }
    }
    if (answered && RoundIsOneRun()) {
      std::sort(ranked.begin(), ranked.end(), [](const auto* a, const auto* b) {
        return std::make_pair(a->time_ns(), a->spec().ordinal()) <
               std::make_pair(b->time_ns(), b->spec().ordinal());
      });
      std::vector<std::string> finalists;
      for (const v1::TrialResult* result : ranked) {
        if (finalists.size() == kFinalists) break;
        finalists.push_back(result->spec().schedule().text());
      }
      EnterPhase(TaskPhase::kConfirm);
      checkpoint_.finalists = std::move(finalists);
      return absl::OkStatus();
    }
    RetryRound("race of the finalists");
    if (!active()) return absl::OkStatus();
  }
  std::vector<std::string> schedules = FastestSchedules(results_, kRaceSize);
  if (schedules.size() <= kFinalists) {
    EnterPhase(TaskPhase::kConfirm);
    checkpoint_.finalists = std::move(schedules);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(EnsureOrdinals(kRaceSize, port));
  RoundCheckpoint round;
  for (std::string& schedule : schedules) {
    round.entries.push_back({"", std::move(schedule), RoundRole::kFinalist});
  }
  StartRound(v1::TRIAL_KIND_RACE, std::move(round), plan);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> TaskRunner::Incumbent(
    TaskPort& port) const {
  ASSIGN_OR_RETURN(std::optional<BestKnown> best, port.Best(spec_.Key()));
  if (!best || !best->confirmed) return std::nullopt;
  const v1::ScheduleText& schedule = best->record.result.spec().schedule();
  const bool same_space = schedule.space() == space_->name() &&
                          schedule.space_version() == kSpaceVersion;
  if (!same_space || schedule.text() == default_text_) return std::nullopt;
  const auto parsed = space_->Parse(schedule.text());
  if (!parsed.ok() || space_->Refusal(*parsed)) return std::nullopt;
  const auto facts = results_.schedules().find(schedule.text());
  if (facts != results_.schedules().end() && facts->second.failed) {
    return std::nullopt;
  }
  return schedule.text();
}

absl::Status TaskRunner::StartConfirmation(TaskPort& port, TaskPlan* plan) {
  ASSIGN_OR_RETURN(const std::optional<std::string> incumbent, Incumbent(port));
  RoundCheckpoint round;
  round.entries.push_back({"", default_text_, RoundRole::kDefault});
  if (incumbent) {
    round.entries.push_back({"", *incumbent, RoundRole::kIncumbent});
  }
  for (const std::string& finalist : checkpoint_.finalists) {
    if (incumbent != finalist) {
      round.entries.push_back({"", finalist, RoundRole::kFinalist});
    }
  }
  if (round.entries.size() == 1) {
    Finish("no candidate gave a verified time");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(EnsureOrdinals(round.entries.size(), port));
  StartRound(v1::TRIAL_KIND_CONFIRM, std::move(round), plan);
  return absl::OkStatus();
}

absl::Status TaskRunner::AdvanceConfirm(TaskPort& port, TaskPlan* plan) {
  if (!checkpoint_.round) return StartConfirmation(port, plan);
  if (RoundOpen()) return absl::OkStatus();
  bool lost_base = false;  // the default or the incumbent
  int finalists = 0, lost_finalists = 0;
  for (const RoundCheckpoint::Entry& entry : checkpoint_.round->entries) {
    const bool lost = RoundResult(entry) == nullptr;
    if (entry.role != RoundRole::kFinalist) {
      lost_base = lost_base || lost;
    } else {
      ++finalists;
      lost_finalists += lost ? 1 : 0;
    }
  }
  if (!RoundIsOneRun() || lost_base ||
      (finalists > 0 && lost_finalists == finalists)) {
    RetryRound("confirmation");
    return active() ? StartConfirmation(port, plan) : absl::OkStatus();
  }
  const v1::TrialResult& base = *RoundResult(checkpoint_.round->entries[0]);
  if (base.outcome() != v1::OUTCOME_OK || base.time_ns() <= 0) {
    Pause(absl::StrCat("the default schedule failed in the confirmation: ",
                       OutcomeText(base)));
    return absl::OkStatus();
  }
  // Another job may have published meanwhile: its answer was not compared with.
  ASSIGN_OR_RETURN(const std::optional<std::string> incumbent, Incumbent(port));
  const auto& entries = checkpoint_.round->entries;
  const bool compared =
      !incumbent || std::any_of(entries.begin(), entries.end(),
                                [&](const RoundCheckpoint::Entry& entry) {
                                  return entry.schedule == *incumbent;
                                });
  if (!compared) {
    checkpoint_.round.reset();
    round_results_.clear();
    return StartConfirmation(port, plan);
  }
  return FinishConfirmation(port, plan);
}

// The log refuses the winner: another job found it wrong meanwhile, or this one
// was not to look at the log. It goes on without it.
absl::Status TaskRunner::DropWinner(const std::string& schedule,
                                    const absl::Status& why, TaskPort& port,
                                    TaskPlan* plan) {
  if (schedule == default_text_) {
    Pause(absl::StrCat("the default schedule cannot be published: ",
                       why.message()));
    return absl::OkStatus();
  }
  results_.Disprove(schedule);
  std::erase(checkpoint_.finalists, schedule);
  if (checkpoint_.finalists.empty()) {
    checkpoint_.finalists = FastestSchedules(results_, kFinalists);
  }
  checkpoint_.round.reset();
  round_results_.clear();
  return StartConfirmation(port, plan);
}

absl::Status TaskRunner::FinishConfirmation(TaskPort& port, TaskPlan* plan) {
  Confirmation confirmation;
  for (const RoundCheckpoint::Entry& entry : checkpoint_.round->entries) {
    const v1::TrialResult* result = RoundResult(entry);
    switch (entry.role) {
      case RoundRole::kDefault:
        confirmation.default_result = result;
        break;
      case RoundRole::kIncumbent:
        confirmation.incumbent = result;
        break;
      case RoundRole::kFinalist:
        if (result != nullptr) confirmation.finalists.push_back(result);
        break;
    }
  }
  const UsedNoiseFloor noise = UsableNoiseFloor(
      port.NoiseFloor(confirmation.default_result->device_id()));
  confirmation.noise_floor = noise.floor;
  const ConfirmVerdict verdict = Judge(confirmation);
  const absl::Status published = PublishVerdict(verdict, port);
  if (published.code() == absl::StatusCode::kFailedPrecondition) {
    return DropWinner(verdict.winner->spec().schedule().text(), published, port,
                      plan);
  }
  RETURN_IF_ERROR(published);
  v1::TaskStatus found;
  found.set_best_ns(verdict.winner->time_ns());
  found.set_default_ns(static_cast<int64_t>(verdict.default_ns));
  found.set_confirmed(true);
  found.set_speedup(verdict.speedup.ratio);
  found.set_speedup_low(verdict.speedup.low);
  found.set_speedup_high(verdict.speedup.high);
  found.set_schedule(verdict.winner->spec().schedule().text());
  verdict_ = std::move(found);
  std::vector<std::string> reasons = {verdict.reason, noise.note};
  std::erase(reasons, "");
  Finish(absl::StrJoin(reasons, "; "),
         /*gain_reached=*/spec_.until_gain > 0 &&
             verdict.speedup.low >= spec_.until_gain);
  return absl::OkStatus();
}

absl::Status TaskRunner::PublishVerdict(const ConfirmVerdict& verdict,
                                        TaskPort& port) {
  const std::string& trial_id = verdict.winner->spec().trial_id();
  ASSIGN_OR_RETURN(const std::optional<BestKnown> best, port.Best(spec_.Key()));
  // Published before a restart that came before the job was saved.
  if (best && best->confirmed &&
      best->record.result.spec().trial_id() == trial_id) {
    return absl::OkStatus();
  }
  Publication publication;
  publication.key = spec_.Key();
  publication.trial_id = trial_id;
  publication.time_ns = verdict.winner->time_ns();
  // Whole nanoseconds, around the time as the board rounded it.
  publication.low_ns = std::clamp<int64_t>(
      static_cast<int64_t>(verdict.time.low), 1, publication.time_ns);
  publication.high_ns = std::max<int64_t>(
      static_cast<int64_t>(std::ceil(verdict.time.high)), publication.time_ns);
  publication.default_ns = static_cast<int64_t>(verdict.default_ns);
  publication.speedup = verdict.speedup.ratio;
  publication.speedup_low = verdict.speedup.low;
  publication.speedup_high = verdict.speedup.high;
  publication.job_id = spec_.job_id;
  return port.Publish(publication);
}

void TaskRunner::Finish(const std::string& reason, bool gain_reached) {
  const bool probe = checkpoint_.gain_probe;
  if (probe && !gain_reached && !checkpoint_.search_over) {
    checkpoint_.gain_probe = false;
    checkpoint_.finalists.clear();
    verdict_.reset();
    EnterPhase(TaskPhase::kSearch);
    return;
  }
  const bool exhausted =
      checkpoint_.exhausted &&
      (spec_.budget_trials == 0 || results_.trials() < spec_.budget_trials);
  if (probe && gain_reached) {
    ended_by_ = "until_gain";
  } else if (exhausted) {
    ended_by_ = "space";
  } else {
    const bool trials =
        spec_.budget_trials > 0 &&
        (spec_.budget_ms == 0 || results_.trials() >= spec_.budget_trials);
    ended_by_ = trials ? "trials" : "minutes";
  }
  Settle(exhausted && !(probe && gain_reached) ? v1::JOB_STATE_EXHAUSTED
                                               : v1::JOB_STATE_DONE,
         reason);
}

}  // namespace regatta

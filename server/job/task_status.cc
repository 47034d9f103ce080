// What a task shows and what it keeps across restarts.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/job/task_runner.h"

namespace regatta {

void TaskRunner::FillBest(v1::TaskStatus* status) const {
  if (verdict_) {
    status->MergeFrom(*verdict_);
    return;
  }
  status->set_default_ns(results_.default_ns());
  const TaskResults::Entry* best = results_.Best();
  if (best == nullptr) return;
  status->set_best_ns(best->second.time_ns);
  status->set_schedule(best->first);
  if (results_.default_ns() > 0) {
    status->set_speedup(static_cast<double>(results_.default_ns()) /
                        static_cast<double>(best->second.time_ns));
  }
}

v1::TaskStatus TaskRunner::Status(const TaskSurroundings& surroundings) const {
  if (settled_status_) return *settled_status_;
  v1::TaskStatus status;
  status.set_workload(spec_.workload.text);
  status.set_workload_key(spec_.workload.key);
  status.set_device_class(spec_.device_class);
  *status.mutable_policy() = spec_.policy;
  status.set_budget_trials(spec_.budget_trials);
  status.set_trials(results_.trials());
  for (const auto& [name, count] : results_.outcomes()) {
    (*status.mutable_outcomes())[name] = count;
  }
  status.set_reused(reused_);
  status.set_weight(spec_.weight);
  status.set_budget_minutes(static_cast<double>(spec_.budget_ms) / 60'000);
  if (spec_.until_gain > 0) {
    status.set_until_gain_percent(std::round((spec_.until_gain - 1) * 1e8) /
                                  1e6);
  }
  status.set_ended_by(ended_by_);
  status.set_device_ns(results_.device_ns());
  status.set_flops(spec_.workload.Flops());
  status.set_bytes(spec_.workload.Bytes());
  if (surroundings.device_class != nullptr) {
    const int threads = spec_.policy.threads();
    status.set_peak_flops_per_s(surroundings.device_class->peak_flops_per_s *
                                threads);
    status.set_bandwidth_bytes_per_s(
        surroundings.device_class->bandwidth_bytes_per_s * threads);
  }
  FillBest(&status);
  *status.mutable_times() = results_.Times();
  if (!active()) {
    status.set_state(settled_);
    status.set_reason(reason_);
    return status;
  }
  const bool begun = !results_.outcomes().empty();
  status.set_state(begun || surroundings.waiting.empty()
                       ? v1::JOB_STATE_RUNNING
                       : v1::JOB_STATE_QUEUED);
  if (!surroundings.waiting.empty()) {
    status.set_reason(absl::StrCat("waiting: ", surroundings.waiting));
  }
  status.set_phase(std::string(TaskPhaseName(checkpoint_.phase)));
  const double rate = results_.Rate(surroundings.now);
  status.set_trials_per_s(rate);
  status.set_remaining_ms(-1);
  if (checkpoint_.phase == TaskPhase::kSearch && spec_.budget_ms > 0) {
    const absl::Duration left =
        absl::Milliseconds(spec_.budget_ms) - SearchTime(surroundings.now);
    status.set_remaining_ms(
        std::max<int64_t>(0, absl::ToInt64Milliseconds(left)));
  }
  if (checkpoint_.phase == TaskPhase::kSearch && spec_.budget_trials > 0 &&
      rate > 0) {
    const auto left =
        std::max<int64_t>(0, spec_.budget_trials - results_.trials());
    const auto left_ms = static_cast<int64_t>(left / rate * 1000);
    status.set_remaining_ms(status.remaining_ms() < 0
                                ? left_ms
                                : std::min(left_ms, status.remaining_ms()));
  }
  return status;
}

TaskCheckpoint TaskRunner::Checkpoint(SteadyTime now) const {
  TaskCheckpoint checkpoint = checkpoint_;
  checkpoint.search_ms = absl::ToInt64Milliseconds(SearchTime(now));
  return checkpoint;
}

WorkNews TaskRunner::UnsavedWork() const {
  WorkNews news;
  news.closed.assign(closed_.begin(), closed_.end());
  for (const int64_t number : opened_) {
    const auto open =
        open_.find(absl::StrCat(spec_.job_id, "/", spec_.index, "/", number));
    if (open == open_.end()) continue;  // cancelled with its whole job
    WorkCheckpoint work;
    for (const v1::TrialSpec& trial : open->second.work.trials()) {
      work.kind = trial.kind();
      work.trials.push_back(
          {trial.ordinal(), trial.schedule().text(), trial.incumbent_ns()});
    }
    news.opened.push_back(std::move(work));
  }
  return news;
}

void TaskRunner::WorkSaved() {
  opened_.clear();
  closed_.clear();
}

TaskRunner TaskRunner::Resumed(int64_t first_ordinal) const {
  CHECK(settled_ == v1::JOB_STATE_PAUSED) << "task " << spec_.index;
  TaskRunner resumed(spec_);
  resumed.checkpoint_ = checkpoint_;
  TaskCheckpoint& checkpoint = resumed.checkpoint_;
  checkpoint.forgiven_below = first_ordinal;
  checkpoint.in_flight.clear();
  resumed.closed_ = closed_;
  checkpoint.round.reset();
  checkpoint.round_attempts = 0;
  return resumed;
}

void TaskRunner::Restore(TaskCheckpoint checkpoint,
                         const v1::TaskStatus& saved) {
  checkpoint_ = std::move(checkpoint);
  switch (saved.state()) {
    case v1::JOB_STATE_PAUSED:
    case v1::JOB_STATE_DONE:
    case v1::JOB_STATE_EXHAUSTED:
    case v1::JOB_STATE_FAILED:
    case v1::JOB_STATE_CANCELLED:
      settled_ = saved.state();
      reason_ = saved.reason();
      settled_status_ = saved;
      checkpoint_.in_flight.clear();
      break;
    default:
      break;
  }
}

}  // namespace regatta

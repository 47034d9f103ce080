#include "server/job/managed_job.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"

namespace regatta {

absl::Status ManagedJob::AddTasks() {
  ASSIGN_OR_RETURN(std::vector<TaskSpec> specs, ExpandTasks(id_, request_));
  for (TaskSpec& spec : specs) {
    spec.deadline_unix_ms = DeadlineUnixMs();
    tasks_.emplace_back(std::move(spec));
  }
  return absl::OkStatus();
}

int64_t ManagedJob::DeadlineUnixMs() const {
  if (request_.deadline_minutes() <= 0) return 0;
  return submitted_unix_ms_ +
         std::llround(request_.deadline_minutes() * 60'000);
}

absl::StatusOr<ManagedJob> ManagedJob::Create(int64_t job_id,
                                              v1::SubmitJobRequest request,
                                              int64_t submitted_unix_ms) {
  ManagedJob job(job_id, std::move(request));
  job.submitted_unix_ms_ = submitted_unix_ms;
  RETURN_IF_ERROR(job.AddTasks());
  return job;
}

absl::StatusOr<ManagedJob> ManagedJob::Load(
    const TuningLog::StoredJob& stored) {
  ManagedJob job(stored.job.job_id(), stored.request);
  job.submitted_unix_ms_ = stored.job.submitted_unix_ms();
  job.ended_unix_ms_ = stored.job.ended_unix_ms();
  RETURN_IF_ERROR(job.AddTasks());
  // Stored, but never saved: the server was killed right after.
  if (stored.checkpoint.empty()) return job;
  ASSIGN_OR_RETURN(std::vector<TaskCheckpoint> checkpoints,
                   ParseCheckpoint(stored.checkpoint));
  if (checkpoints.size() != job.tasks_.size() ||
      stored.job.tasks_size() != static_cast<int>(job.tasks_.size())) {
    return absl::DataLossError(
        absl::StrCat("job ", job.id_, " has ", job.tasks_.size(),
                     " tasks, but progress of ", checkpoints.size()));
  }
  for (const TuningLog::JobWork& row : stored.work) {
    if (row.task < 0 || row.task >= static_cast<int>(checkpoints.size())) {
      return absl::DataLossError(absl::StrCat(
          "job ", job.id_, " has work of a task ", row.task, " that it lacks"));
    }
    ASSIGN_OR_RETURN(WorkCheckpoint work, ParseWork(row.bytes));
    std::vector<WorkCheckpoint>& known = checkpoints[row.task].in_flight;
    // Listed in the checkpoint while the task waited for its target.
    std::erase_if(known, [&](const WorkCheckpoint& other) {
      return other.number() == work.number();
    });
    known.push_back(std::move(work));
  }
  for (size_t i = 0; i < job.tasks_.size(); ++i) {
    job.tasks_[i].Restore(std::move(checkpoints[i]),
                          stored.job.tasks(static_cast<int>(i)));
  }
  return job;
}

bool ManagedJob::active() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const TaskRunner& task) { return task.active(); });
}

void ManagedJob::Cancel() {
  for (TaskRunner& task : tasks_) task.Cancel();
}

void ManagedJob::ResumeTask(int index, int64_t first_ordinal) {
  TaskRunner& task = tasks_.at(index);
  task = task.Resumed(first_ordinal);
}

v1::Job ManagedJob::Status(const SurroundingsOf& surroundings_of) const {
  v1::Job job;
  job.set_job_id(id_);
  job.set_name(request_.name());
  job.set_priority(request_.priority());
  job.set_strategy(request_.strategy());
  job.set_seed(request_.seed());
  job.set_fresh(request_.fresh());
  job.set_weight(request_.weight() > 0 ? request_.weight() : 1);
  job.set_user(request_.user());
  job.set_deadline_unix_ms(DeadlineUnixMs());
  job.set_submitted_unix_ms(submitted_unix_ms_);
  job.set_ended_unix_ms(ended_unix_ms_);
  for (const TaskRunner& task : tasks_) {
    *job.add_tasks() = task.Status(surroundings_of(task));
  }
  DeriveJobState(&job);
  return job;
}

std::string ManagedJob::Checkpoint(SteadyTime now) const {
  std::vector<TaskCheckpoint> checkpoints;
  for (const TaskRunner& task : tasks_) {
    checkpoints.push_back(task.Checkpoint(now));
  }
  return PrintCheckpoint(checkpoints);
}

void ManagedJob::FillWork(TuningLog::JobProgress* progress) const {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const int task = static_cast<int>(i);
    const WorkNews news = tasks_[i].UnsavedWork();
    for (const WorkCheckpoint& work : news.opened) {
      progress->opened.push_back({task, work.number(), PrintWork(work)});
    }
    for (const int64_t number : news.closed) {
      progress->closed.emplace_back(task, number);
    }
  }
}

void ManagedJob::WorkSaved() {
  for (TaskRunner& task : tasks_) task.WorkSaved();
}

void DeriveJobState(v1::Job* job) {
  int counts[v1::JobState_ARRAYSIZE] = {};
  for (const v1::TaskStatus& task : job->tasks()) ++counts[task.state()];
  const auto any = [&](v1::JobState state) { return counts[state] > 0; };
  v1::JobState state = v1::JOB_STATE_DONE;
  if (any(v1::JOB_STATE_RUNNING)) {
    state = v1::JOB_STATE_RUNNING;
  } else if (any(v1::JOB_STATE_QUEUED)) {
    state = v1::JOB_STATE_QUEUED;
  } else if (any(v1::JOB_STATE_CANCELLED)) {
    state = v1::JOB_STATE_CANCELLED;
  } else if (any(v1::JOB_STATE_PAUSED)) {
    state = v1::JOB_STATE_PAUSED;
  } else if (any(v1::JOB_STATE_FAILED)) {
    state = v1::JOB_STATE_FAILED;
  } else if (counts[v1::JOB_STATE_EXHAUSTED] == job->tasks_size()) {
    state = v1::JOB_STATE_EXHAUSTED;
  }
  job->set_state(state);
  if (any(v1::JOB_STATE_PAUSED) && state != v1::JOB_STATE_PAUSED &&
      !IsEnded(state)) {
    // What needs somebody's attention while the rest goes on.
    const int paused = counts[v1::JOB_STATE_PAUSED];
    job->set_reason(absl::StrCat(paused, " of ", job->tasks_size(),
                                 " tasks paused; the others go on"));
    return;
  }
  for (const v1::TaskStatus& task : job->tasks()) {
    if (task.state() != state || task.reason().empty()) continue;
    job->set_reason(job->tasks_size() == 1
                        ? task.reason()
                        : absl::StrCat(task.workload(), " on ",
                                       task.device_class(), ": ",
                                       task.reason()));
    break;
  }
}

}  // namespace regatta

// A job as the manager holds it: its request, its tasks, its state as a whole.
//
// Not thread-safe.
#ifndef REGATTA_SERVER_JOB_MANAGED_JOB_H_
#define REGATTA_SERVER_JOB_MANAGED_JOB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/tuning_service.pb.h"
#include "server/job/task_runner.h"
#include "storage/tuning_log.h"

namespace regatta {

class ManagedJob {
 public:
  // A new job. `request` is normalised.
  static absl::StatusOr<ManagedJob> Create(int64_t job_id,
                                           v1::SubmitJobRequest request,
                                           int64_t submitted_unix_ms);
  // As it was stored. DataLoss when it cannot be read.
  static absl::StatusOr<ManagedJob> Load(const TuningLog::StoredJob& stored);

  int64_t id() const { return id_; }
  const std::string& request_id() const { return request_.request_id(); }
  std::vector<TaskRunner>& tasks() { return tasks_; }
  const std::vector<TaskRunner>& tasks() const { return tasks_; }
  // Some task may still go on.
  bool active() const;

  // Every unfinished task ends cancelled.
  void Cancel();
  // The paused task goes on; see TaskRunner::Resumed.
  void ResumeTask(int index, int64_t first_ordinal);

  using SurroundingsOf = std::function<TaskSurroundings(const TaskRunner&)>;
  v1::Job Status(const SurroundingsOf& surroundings_of) const;
  std::string Checkpoint(SteadyTime now) const;
  // Puts in what became of its work since the last WorkSaved.
  void FillWork(TuningLog::JobProgress* progress) const;
  void WorkSaved();
  // Remembers when the job ended, once.
  void NoteEnd(int64_t unix_ms) {
    if (ended_unix_ms_ == 0) ended_unix_ms_ = unix_ms;
  }

 private:
  ManagedJob(int64_t id, v1::SubmitJobRequest request)
      : id_(id), request_(std::move(request)) {}
  absl::Status AddTasks();
  int64_t DeadlineUnixMs() const;  // 0: none

  int64_t id_;
  v1::SubmitJobRequest request_;
  std::vector<TaskRunner> tasks_;
  int64_t submitted_unix_ms_ = 0;
  int64_t ended_unix_ms_ = 0;
};

// State and reason of a job from its tasks' statuses: running while any task
// runs (the reason says how many are paused); once all have stopped, the worst
// of theirs (cancelled, paused, failed), exhausted only when every one is.
void DeriveJobState(v1::Job* job);

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_MANAGED_JOB_H_

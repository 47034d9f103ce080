// One task of a job: a workload on a device class, from the default's
// measurement through search and race to the confirmed verdict.
//
//   default ──► search ──► race ──► confirm ──► done | exhausted
//       │          │ ▲                 │ │
//       │          │ └── gain missed ──┘ │
//       └──────────┴─────────────────────┴──► paused (says why)
//
// A task that is to end at a gain (until_gain) leaves the search for a race and
// a confirmation as soon as its best time shows that gain. It ends when the
// lower 95 % bound of the confirmed speed-up does, too; else it searches on,
// and comes back once its best is kGainStep faster than the one that missed.
//
// A pure state machine: results go in (Apply), work comes out (Advance); time,
// the log and the fleet are handed in. What must survive a restart is in its
// checkpoint and in the records; see Restore.
//
// Not thread-safe.
#ifndef REGATTA_SERVER_JOB_TASK_RUNNER_H_
#define REGATTA_SERVER_JOB_TASK_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compiler/space/space.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "server/job/checkpoint.h"
#include "server/job/finals.h"
#include "server/job/job_request.h"
#include "server/job/task_history.h"
#include "server/job/task_results.h"
#include "server/search/search_strategy.h"
#include "storage/tuning_log.h"

namespace regatta {

// What a task asks of its surroundings while it advances.
class TaskPort {
 public:
  virtual ~TaskPort() = default;
  // First of `count` fresh ordinals (see TuningLog).
  virtual absl::StatusOr<int64_t> ReserveOrdinals(int task, int64_t count) = 0;
  virtual absl::StatusOr<std::optional<BestKnown>> Best(const BestKey& key) = 0;
  // FailedPrecondition: the winner was found wrong elsewhere.
  virtual absl::Status Publish(const Publication& publication) = 0;
  // Of a device, as a fraction. Absent: unknown.
  virtual std::optional<double> NoiseFloor(const std::string& device_id) = 0;
};

// What the caller has to do after Advance: save the job if `save`, then cancel
// and submit.
struct TaskPlan {
  std::vector<v1::Work> submit;
  std::vector<std::string> cancel;  // work ids
  bool save = false;
};

// What only the caller knows of a task's surroundings, for its status.
struct TaskSurroundings {
  SteadyTime now;
  const ClassView* device_class = nullptr;  // null: no device registered
  std::string waiting;                      // why nothing runs; "": it may
};

class TaskRunner {
 public:
  explicit TaskRunner(TaskSpec spec) : spec_(std::move(spec)) {}

  const TaskSpec& spec() const { return spec_; }
  // The space is known: a board of the class has told its target.
  bool resolved() const { return space_ != nullptr; }
  // Neither ended nor paused.
  bool active() const { return settled_ == v1::JOB_STATE_UNSPECIFIED; }
  // Some trial of it was answered.
  bool begun() const { return !results_.outcomes().empty(); }
  const std::string& target() const { return checkpoint_.target; }
  const std::string& compiler_version() const { return checkpoint_.compiler; }
  bool simulated() const { return checkpoint_.simulated; }
  const Space* space() const { return space_.get(); }

  // Gives the class's target. InvalidArgument when the target makes no space of
  // the workload. REQUIRES: not resolved.
  absl::Status Resolve(const std::string& target,
                       const std::string& compiler_version, bool simulated);
  // What the log knows; once, after Resolve and Restore. Records of this task
  // are replayed.
  void Learn(TaskHistory history);

  // InvalidArgument when a result does not belong to this task: it would write
  // under another key, or nobody asked for it.
  absl::Status Check(const v1::TrialResult& result) const;
  // Takes a committed result in. REQUIRES: Check passed; not taken in before.
  void Apply(const v1::TrialResult& result,
             const TaskResults::Passage& passage);
  // Moves on as far as it can, keeping `wanted` candidates out. On an error the
  // plan holds what was decided before it; call again later.
  absl::Status Advance(SteadyTime now, int wanted, TaskPort& port,
                       TaskPlan* plan);
  // Work that is out, to be submitted again on every connect.
  std::vector<v1::Work> InFlight() const;
  // Ends an unfinished (or paused) task; the caller cancels the job's work.
  void Cancel();
  // The trial is out and unanswered.
  bool IsOpen(const std::string& trial_id) const {
    return open_trials_.count(trial_id) > 0;
  }
  // Ends or pauses the task.
  void Settle(v1::JobState state, std::string reason);

  v1::TaskStatus Status(const TaskSurroundings& surroundings) const;
  TaskCheckpoint Checkpoint(SteadyTime now) const;
  // Work to be saved with the checkpoint; WorkSaved once it is.
  WorkNews UnsavedWork() const;
  void WorkSaved();
  // REQUIRES: before Resolve. `saved` is the status saved with the checkpoint.
  void Restore(TaskCheckpoint checkpoint, const v1::TaskStatus& saved);
  // The task of a paused one, to go on from there: not resolved, learns from
  // the log like after a restart. Failures below `first_ordinal`, which is
  // fresh, are forgiven. REQUIRES: paused.
  TaskRunner Resumed(int64_t first_ordinal) const;

  // Inputs of screening trials and of confirmations.
  uint64_t ScreeningSeed() const;
  uint64_t ConfirmationSeed() const;

  // Losses in a row before a task is paused, attempts at a race or
  // confirmation.
  static constexpr int kMaxLosses = 10;
  static constexpr int kRoundAttempts = 3;
  static constexpr double kGainStep = 0.02;

 private:
  struct OpenWork {
    v1::Work work;
    std::set<std::string> open;  // trial ids without a result
  };

  absl::Status AdvanceDefault(TaskPort& port, TaskPlan* plan);
  absl::Status AdvanceSearch(SteadyTime now, int wanted, TaskPort& port,
                             TaskPlan* plan);
  absl::Status AdvanceRace(TaskPort& port, TaskPlan* plan);
  absl::Status AdvanceConfirm(TaskPort& port, TaskPlan* plan);
  absl::Status StartConfirmation(TaskPort& port, TaskPlan* plan);
  absl::Status FinishConfirmation(TaskPort& port, TaskPlan* plan);
  absl::Status DropWinner(const std::string& schedule, const absl::Status& why,
                          TaskPort& port, TaskPlan* plan);
  absl::Status PublishVerdict(const ConfirmVerdict& verdict, TaskPort& port);
  // Ends the task, or goes back to the search when it was left for a gain that
  // is not there.
  void Finish(const std::string& reason, bool gain_reached = false);
  bool GainInSight() const;
  bool Forgiven(const v1::TrialResult& result) const;
  // Starts a race or confirmation of these schedules. REQUIRES: EnsureOrdinals.
  void StartRound(v1::TrialKind kind, RoundCheckpoint round, TaskPlan* plan);
  bool RoundOpen() const;
  void KeepRoundResult(const v1::TrialResult& result);
  // All answers came from one interleaved run: after a loss in the middle of
  // it, the rest comes from another run and must not be compared.
  bool RoundIsOneRun() const;
  // The schedule that a published answer of the key names, where it is legal
  // here and not known to fail.
  absl::StatusOr<std::optional<std::string>> Incumbent(TaskPort& port) const;
  // Of an entry of the round; null when it was lost to the infrastructure.
  const v1::TrialResult* RoundResult(const RoundCheckpoint::Entry& entry) const;
  // The next attempt, or a pause when there were enough.
  void RetryRound(const std::string& what);

  void StartStrategy();
  absl::Status EnsureOrdinals(int64_t count, TaskPort& port);
  // REQUIRES: EnsureOrdinals.
  v1::TrialSpec MakeTrial(v1::TrialKind kind, const std::string& schedule);
  void Send(std::vector<v1::TrialSpec> trials, TaskPlan* plan);
  void CancelOpen(TaskPlan* plan);
  void NoteClosed(int64_t number);
  // Removes the trial from its work; true when it was out.
  bool Close(const std::string& trial_id);
  void TellStrategy(const v1::TrialResult& result);
  void EnterPhase(TaskPhase phase);
  void Pause(std::string reason) {
    Settle(v1::JOB_STATE_PAUSED, std::move(reason));
  }
  absl::Duration SearchTime(SteadyTime now) const;
  absl::Duration SearchLimit() const;
  void StopSearchClock(SteadyTime now);
  void FillBest(v1::TaskStatus* status) const;

  TaskSpec spec_;
  // Progress. Its in-flight list is empty once resolved: open_ has it.
  TaskCheckpoint checkpoint_;
  v1::JobState settled_ = v1::JOB_STATE_UNSPECIFIED;
  std::string reason_;
  std::shared_ptr<const Space> space_;
  std::string default_text_;
  TaskResults results_;
  std::vector<Schedule> log_seeds_;
  std::unique_ptr<SearchStrategy> strategy_;
  std::map<std::string, OpenWork> open_;            // by work id
  std::map<std::string, std::string> open_trials_;  // trial id to work id
  // Numbers of work that came and went since the last save; see WorkNews.
  std::set<int64_t> opened_, closed_;
  std::map<std::string, v1::TrialResult> round_results_;
  int64_t next_ordinal_ = 0, ordinal_end_ = 0;
  int64_t ordinal_block_ = 0;  // reserved last; 0: none yet
  int64_t reused_ = 0;
  std::optional<SteadyTime> search_resumed_;
  // Best, default, speed-up and schedule as the confirmation found them.
  std::optional<v1::TaskStatus> verdict_;
  std::string ended_by_;  // see v1.TaskStatus
  // The status with which the task had settled before a restart.
  std::optional<v1::TaskStatus> settled_status_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_TASK_RUNNER_H_

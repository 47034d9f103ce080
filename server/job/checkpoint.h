// What of a task's progress is not in its records: kept with the job, so that a
// restarted server takes up the same work under the same ids.
#ifndef REGATTA_SERVER_JOB_CHECKPOINT_H_
#define REGATTA_SERVER_JOB_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

enum class TaskPhase { kDefault, kSearch, kRace, kConfirm };
// "default", "search", "race", "confirm".
std::string_view TaskPhaseName(TaskPhase phase);

enum class RoundRole { kDefault, kIncumbent, kFinalist };

// Trials that are timed together.
struct RoundCheckpoint {
  struct Entry {
    std::string trial_id;
    std::string schedule;
    RoundRole role = RoundRole::kFinalist;
  };
  std::vector<Entry> entries;
};

// Work that was submitted; the rest of its trials follows from the task.
struct WorkCheckpoint {
  struct Trial {
    int64_t ordinal = 0;
    std::string schedule;
    int64_t incumbent_ns = 0;
  };
  v1::TrialKind kind = v1::TRIAL_KIND_UNSPECIFIED;
  std::vector<Trial> trials;  // all of the work's, answered or not

  // Names it within its task. REQUIRES: trials.
  int64_t number() const { return trials.front().ordinal; }
};

struct TaskCheckpoint {
  std::string target;    // of the class; empty: not known yet
  std::string compiler;  // that the task runs with
  bool simulated = false;
  TaskPhase phase = TaskPhase::kDefault;
  bool search_over = false;
  bool exhausted = false;  // the search had nothing more to ask
  int64_t search_ms = 0;   // spent searching so far
  int round_attempts = 0;  // lost races or confirmations of the phase
  // The gain that ends the task is in sight: no more is asked for until race
  // and confirmation have said whether it is there.
  bool gain_probe = false;
  int64_t gain_asked_ns = 0;  // best time that it was last asked with; 0: never
  // Failures of trials below this ordinal pause nothing: the task was resumed.
  int64_t forgiven_below = 0;
  std::vector<std::string> finalists;  // that the race chose
  std::optional<RoundCheckpoint> round;
  // Only while the task waits for its target: else each work is a row of the
  // log, so that what a busy task has out is not written whenever some changes.
  std::vector<WorkCheckpoint> in_flight;
};

// What became of a task's work since it was last saved.
struct WorkNews {
  std::vector<WorkCheckpoint> opened;
  std::vector<int64_t> closed;  // numbers
};

// Text form of a job's tasks, in order.
std::string PrintCheckpoint(absl::Span<const TaskCheckpoint> tasks);
std::string PrintWork(const WorkCheckpoint& work);
// DataLoss for text that PrintCheckpoint, or PrintWork, did not write.
absl::StatusOr<WorkCheckpoint> ParseWork(std::string_view text);
absl::StatusOr<std::vector<TaskCheckpoint>> ParseCheckpoint(
    std::string_view text);

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_CHECKPOINT_H_

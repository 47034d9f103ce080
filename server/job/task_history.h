// What the tuning log contributes to a task.
#ifndef REGATTA_SERVER_JOB_TASK_HISTORY_H_
#define REGATTA_SERVER_JOB_TASK_HISTORY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/trial.pb.h"
#include "server/job/job_request.h"
#include "storage/tuning_log.h"

namespace regatta {

struct TaskHistory {
  // This task's own records, oldest first: what happened before a restart.
  std::vector<v1::TrialResult> own;
  // Records of other jobs with the same key, target and compiler. Their blocks
  // are left out.
  std::vector<v1::TrialResult> reusable;
  // Schedule texts worth trying, best first: the key's best under another
  // compiler, then other shapes', then other classes'. They may be foreign to
  // the space.
  std::vector<std::string> suggestions;
};

// With `fresh` only the task's own records. `usable_class` says whether
// another class may make suggestions (a simulated one only to simulated ones).
absl::StatusOr<TaskHistory> LoadTaskHistory(
    const TuningLog& log, const TaskSpec& spec, const std::string& target,
    const std::string& compiler_version,
    const std::function<bool(const std::string&)>& usable_class);

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_TASK_HISTORY_H_

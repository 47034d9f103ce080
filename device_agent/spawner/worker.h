// One worker process and everything below it, as the spawner sees it: started,
// watched, killed, gone.
//
// Not thread-safe; lives in the spawner's one thread.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_WORKER_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_WORKER_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/spawner/process_tree.h"
#include "device_agent/spawner/run_delay.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

class Worker {
 public:
  // How long killing may take before what is left counts as leftovers.
  static constexpr absl::Duration kKillLimit = absl::Seconds(2);
  static constexpr size_t kErrorTailBytes = 4096;

  // Starts the program under the sandbox with `socket` as its descriptor 3.
  // `held` are closed with this object. NotFound for a program that is
  // not there; other errors name the step of the sandbox that failed.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(
      const v1::Spawn& spawn, int64_t id, Sandbox& sandbox, UniqueFd socket,
      std::vector<UniqueFd> held, const Clock& clock);

  int64_t id() const { return id_; }
  pid_t pid() const { return pid_; }
  // Readable while the worker writes to its standard error; -1 once closed.
  int error_pipe() const { return errors_.get(); }
  void ReadErrors();

  // Begins to kill, once; later reasons are ignored.
  void Kill(v1::ExitReason reason, const std::string& note);
  bool killing() const { return kill_deadline_.has_value(); }
  // The program itself ended and is about to be waited for; what it started is
  // killed.
  void ProgramEnded();
  // It has been waited for.
  void ProgramReaped(int status, const rusage& usage);

  // Absent: no wall limit.
  std::optional<SteadyTime> deadline() const {
    if (!limit_.has_value()) return std::nullopt;
    return limit_->deadline();
  }
  // Kills when the wall limit has passed, less what it waited for a processor
  // (then the deadline moves), or when `tree` (null: do not look)
  // shows more memory or tasks than allowed.
  void CheckLimits(const ProcessTree* tree);

  // Those of `below`, all that runs below the spawner, that are known to be
  // this worker's, or may be: its program, what runs below that in `tree` and
  // what was claimed.
  std::vector<ProcessInfo> Own(const ProcessTree& tree,
                               const std::vector<ProcessInfo>& below) const;
  // Processes that may be its and are not to be taken for a later worker's.
  void Claim(const std::vector<ProcessInfo>& processes);
  // While killing: kills again. True once nothing is left or the kill limit has
  // passed, with what is left then claimed. `strays`: its own processes and
  // those below the spawner that no worker is known to own; they are looked for
  // only where there are no cgroups.
  bool Finish(const std::vector<ProcessInfo>& strays);
  // REQUIRES: Finish returned true.
  v1::Exited Report() const;
  // Whether Finish gave up on what was left.
  bool leftovers() const { return leftovers_; }
  // Whether nothing is left by now; kills again where something is. `strays` as
  // above. REQUIRES: killing().
  bool Gone(const std::vector<ProcessInfo>& strays);

 private:
  explicit Worker(const Clock& clock) : clock_(clock) {}

  const Clock& clock_;
  int64_t id_ = 0;
  pid_t pid_ = 0;
  std::string role_;
  int64_t memory_limit_bytes_ = 0;
  int max_tasks_ = 0;
  UniqueFd errors_;
  std::vector<UniqueFd> held_;
  std::unique_ptr<Cgroup> cgroup_;
  std::unique_ptr<ScratchFolder> scratch_;  // null: it may write nowhere
  std::optional<PatientLimit> limit_;
  std::optional<SteadyTime> kill_deadline_;
  v1::ExitReason reason_ = v1::EXIT_REASON_UNSPECIFIED;
  bool reaped_ = false, leftovers_ = false;
  std::set<pid_t> claimed_;
  int status_ = 0;
  int64_t peak_bytes_ = 0;
  std::string error_tail_, note_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_WORKER_H_

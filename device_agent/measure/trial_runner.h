// Carries out assignments on this machine: builds, verifies and times them in
// worker processes and hands back one result per trial.
//
// The agent's loop drives it; `regatta run` does too, without any daemon.
//
// Thread safety: all methods may be called from any thread. Callbacks come from
// the runner's own threads, one at a time per assignment, and may call back in.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_TRIAL_RUNNER_H_
#define REGATTA_DEVICE_AGENT_MEASURE_TRIAL_RUNNER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device_agent/measure/build_client.h"
#include "device_agent/measure/served_device.h"
#include "device_agent/probe/clock_control.h"
#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

class TrialRunner {
 public:
  // `result` is complete: spec, outcome, blocks, phases, environment, device.
  // `last` is true exactly once per assignment that was not stopped.
  using ResultCallback = std::function<void(const std::string& assignment_id,
                                            v1::TrialResult result, bool last)>;

  virtual ~TrialRunner() = default;

  // Queues the assignment for its device and returns at once. Builds of queued
  // assignments overlap the timing of earlier ones; timed runs of one device
  // never overlap. REQUIRES: the device is one of the runner's; the id is new.
  virtual void Start(v1::Assignment assignment) = 0;
  // Drops the assignment: what has not started never does, what runs is killed.
  // No result of it is handed back after Stop returns. Unknown ids are ignored.
  virtual void Stop(const std::string& assignment_id) = 0;
  // Starts nothing more of the assignment. A timed run goes on to its end and
  // its result is handed back; then, or at once when none runs, the rest is
  // dropped as by Stop and `idle` is called, from any thread. Not called for an
  // assignment that is stopped meanwhile. REQUIRES: may_start refuses it.
  virtual void Finish(const std::string& assignment_id,
                      std::function<void()> idle) = 0;
  // What is known of a device by now: peak and cache sizes, once it was probed,
  // judge and flush for whatever is timed from here on. The id says which; its
  // class, target and cores stay those it was created with. REQUIRES: the
  // device is one of the runner's.
  virtual void UpdateDevice(const v1::DeviceInfo& device) = 0;
  // Grows whenever a worker thread makes progress; a stuck runner shows.
  virtual int64_t WorkTicks() const = 0;
};

// How measuring on a device went since the runner was made.
struct MeasuringState {
  int64_t sessions_closed = 0;   // by drift
  int64_t throttled_blocks = 0;  // discarded
  double last_drift = 0;         // of the last one, as a fraction
};

// What the runner needs to know of the machine.
struct RunnerOptions {
  std::string worker_dir;  // where regatta-spawner and the workers are
  std::string build_worker = "regatta-build-worker";  // tests name another
  // Who builds instead of the board's build worker, which is then not needed:
  // called for every build thread. Empty: that worker.
  std::function<std::unique_ptr<BuildWorker>()> builders;
  // For builders elsewhere: the processors, whose class `cores` does not
  // decide.
  v1::DescribeRequest host;
  std::vector<std::string> exec_prefix;  // "qemu-aarch64 -L ..." before workers
  std::string state_dir;                 // cache of references and modules
  std::vector<ServedDevice> devices;
  std::string lock_folder;  // of CoreLocks; "": DefaultLockFolder()
  int64_t build_limit_ms = 60'000;
  int64_t run_limit_ms = 10'000;  // raised for slow references
  int64_t run_memory_bytes = int64_t{4} << 30;
  std::vector<std::string> required_sandbox;  // features that must be in force
  // Asked, from the runner's threads, before each trial of an assignment starts
  // to run; false: its lease is nearly over, so nothing more of the assignment
  // is started (what runs finishes). Empty: always true.
  std::function<bool(const std::string& assignment_id)> may_start;
  ClockPolicy clocks;  // that times are taken under
  std::string root;    // of /sys and the like: "" outside tests
  // Told from a device's timing thread when something of it changes. May be
  // empty.
  std::function<void(const std::string& device_id, const MeasuringState&)>
      on_measuring;
  // A run on the device is about to be timed, for at most so long; zero: it is
  // over. From timing threads. May be empty.
  std::function<void(const std::string& device_id, absl::Duration longest)>
      on_window;
  // Nanoseconds of the reference kernel now (measuring_session.h); from timing
  // threads. Empty: the board's own, of devices that have one.
  std::function<std::optional<double>()> time_reference;
};

// A connection to the spawner that this process started before it had threads
// (see spawner_client.h), shared by everything that starts workers.
class SpawnerClient;

// A build worker of this board, but for its processors. NotFound when the
// program is missing.
absl::StatusOr<BuildWorkerOptions> BuildWorkerOf(const RunnerOptions& options);

// FailedPrecondition when a required sandbox feature is missing (names it) or a
// device's driver leaves no room for it (names both),
// when this is root without another user to run candidates as, and when the
// devices' cores cannot be locked (names the file); NotFound when a
// worker program is missing.
absl::StatusOr<std::unique_ptr<TrialRunner>> CreateTrialRunner(
    RunnerOptions options, std::shared_ptr<SpawnerClient> spawner,
    TrialRunner::ResultCallback on_result);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_TRIAL_RUNNER_H_

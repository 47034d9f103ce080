// The agent's side of one trial in a run worker: starts or takes it, hands it
// the request, follows its answers and judges its end.
//
// Not thread-safe, except Kill.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_RUN_CLIENT_H_
#define REGATTA_DEVICE_AGENT_MEASURE_RUN_CLIENT_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/measure/served_device.h"
#include "device_agent/measure/worker_ending.h"
#include "device_agent/measure/worker_pool.h"
#include "device_agent/spawner/run_delay.h"
#include "device_agent/spawner/spawner_client.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

struct RunWorkerOptions {
  std::string program;
  std::vector<std::string> exec_prefix;
  std::string cpu_list;
  int64_t wall_limit_ms = 0;
  int64_t memory_bytes = 0;
  std::vector<int> held;  // kept open until the worker is gone: core locks
  DriverNeeds needs;
};

// What starts a run worker with these options.
v1::Spawn SpawnOf(const RunWorkerOptions& options);

// The sandbox features in force for candidates on a device with these needs,
// sorted, separated by commas.
std::string SandboxOf(const DriverNeeds& needs, const SpawnerClient& spawner);

class RunClient {
 public:
  // Gives a worker back to the pool that it came from, if all went well.
  ~RunClient();
  // The worker has the request. `module` and `reference` are memory files (see
  // RunRequest). An error is the board's fault.
  static absl::StatusOr<std::unique_ptr<RunClient>> Start(
      RunWorkerOptions options, std::shared_ptr<SpawnerClient> spawner,
      const v1::RunRequest& request, int module, int reference);

  // The same with a worker of `pool`, which outlives the client. The wall limit
  // counts from the request on.
  static absl::StatusOr<std::unique_ptr<RunClient>> StartKept(
      RunWorkerOptions options, WorkerPool& pool, v1::RunRequest request,
      int module, int reference);

  // The next answer; absent when the trial is over, with the reason in
  // ending(). A worker that has not answered after `limit_ms` (a PatientLimit)
  // is killed; 0: only its wall limit counts.
  std::optional<v1::Verified> WaitVerified(int64_t limit_ms = 0);
  std::optional<v1::Timed> WaitTimed(int64_t limit_ms = 0);
  std::optional<v1::Block> TimeBlock(int64_t limit_ms);
  std::optional<v1::Timed> FinishInterleaved(int64_t limit_ms);

  // Waits until the worker and all that it started are gone; does not wait for
  // one that is kept and has answered everything. A worker that has
  // answered everything ends by itself. Sets ending() when something is left or
  // it ended badly and nothing was wrong before.
  void End();

  // What went wrong; absent while nothing has.
  const std::optional<Ending>& ending() const { return ending_; }
  // From any thread.
  void Kill() {
    killed_ = true;
    worker_.handle->Kill();
  }

 private:
  RunClient(RunWorkerOptions options, KeptWorker worker, WorkerPool* pool);
  WorkerHandle& handle() { return *worker_.handle; }
  // How long the next answer is waited for.
  PatientLimit LimitOf(int64_t limit_ms) const;

  // The next answer if it is of `wanted`; otherwise judges.
  std::optional<v1::RunResponse> Wait(v1::RunResponse::ResponseCase wanted,
                                      int64_t limit_ms);
  // The worker is gone or talks nonsense: find out why.
  void Judge();

  const RunWorkerOptions options_;
  WorkerPool* const pool_;  // null: the worker is of this trial only
  KeptWorker worker_;
  // Of a kept worker, from the request on; others have the spawner's.
  std::optional<PatientLimit> wall_limit_;
  bool timed_ = false;  // the last answer came
  std::atomic<bool> killed_ = false;
  std::string stage_ = "in the first call";
  std::optional<Ending> ending_;
  bool ended_ = false;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_RUN_CLIENT_H_

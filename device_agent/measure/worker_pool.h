// Run workers that are used for several trials of one device, for kinds on
// which starting one is slow (DriverNeeds::keep_worker).
//
// A trial never meets what another left behind: only a worker whose trial went
// well in every respect comes back, it is asked before each trial whether its
// device still works, and it is replaced after kMaxTrials or kMaxAge.
//
// Thread-safe.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_WORKER_POOL_H_
#define REGATTA_DEVICE_AGENT_MEASURE_WORKER_POOL_H_

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "device_agent/spawner/spawner_client.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

struct KeptWorker {
  std::unique_ptr<WorkerHandle> handle;
  std::string spawn;  // how it was started, serialised
  int trials = 0;     // that it was taken for
  SteadyTime started;
};

class WorkerPool {
 public:
  static constexpr int kMaxTrials = 500;
  static constexpr absl::Duration kMaxAge = absl::Minutes(10);
  // Waiting for work: as many as are timed in turns. Each holds memory of the
  // device.
  static constexpr size_t kMaxIdle = 4;

  // `prepare`: the request that a worker answers with Prepared. REQUIRES: the
  // clock outlives it.
  WorkerPool(v1::RunRequest prepare, std::shared_ptr<SpawnerClient> spawner,
             const Clock* clock);
  // Ends the idle ones and waits until they are gone.
  ~WorkerPool();

  // A worker that was started like `spawn` and has answered `prepare`: an idle
  // one, else a new one, which has `start_ms` for that. An error is the
  // board's fault.
  absl::StatusOr<KeptWorker> Take(const v1::Spawn& spawn, int64_t start_ms);
  // After a trial that went well in every respect.
  void GiveBack(KeptWorker worker);

 private:
  absl::StatusOr<KeptWorker> Start(const v1::Spawn& spawn, int64_t start_ms);
  // Whether it may have another trial.
  bool Fresh(const KeptWorker& worker) const;
  absl::Status Prepare(KeptWorker& worker, int64_t limit_ms);
  static void Retire(KeptWorker worker);

  const v1::RunRequest prepare_;
  const std::shared_ptr<SpawnerClient> spawner_;
  const Clock* const clock_;
  std::mutex mutex_;
  std::list<KeptWorker> idle_;  // the last used first
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_WORKER_POOL_H_

// One device's work: threads that build ahead, one thread that times.
//
// Thread-safe.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_DEVICE_EXECUTOR_H_
#define REGATTA_DEVICE_AGENT_MEASURE_DEVICE_EXECUTOR_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device_agent/measure/batch.h"
#include "device_agent/measure/builder.h"
#include "device_agent/measure/measuring_session.h"
#include "device_agent/measure/trial_timer.h"

namespace regatta {

// Shared by all devices of a runner; outlives them.
struct ExecutorShared {
  std::function<bool(const std::string&)> may_start;  // never empty
  const CoreLocks* cores = nullptr;
  ModuleCache* modules = nullptr;
  ReferenceStore* references = nullptr;
  const Clock* clock = nullptr;
};

// One build thread, and who builds for it.
struct BuilderPlan {
  BuilderOptions options;
  std::unique_ptr<BuildWorker> worker;
};

// What is looked after around timed runs.
struct BoardWatch {
  std::string root;  // of /sys and the like: "" outside tests
  ClockPolicy clocks;
  // See RunnerOptions; empty: nobody wants to know.
  std::function<void(const std::string& device_id, const MeasuringState&)>
      on_measuring;
  // Nanoseconds of the device's reference kernel; empty: it has none, and no
  // measuring sessions.
  std::function<std::optional<double>()> time_reference;
};

// Why a device with so many cores runs nothing on `threads` threads, for
// people; "": it does.
std::string WhyTooManyThreads(int threads, int cores,
                              const std::string& device_id);

class DeviceExecutor {
 public:
  // Built trials that may wait for the device.
  static constexpr int kBuildAhead = 8;

  DeviceExecutor(ServedDevice device, CorePlan plan,
                 std::vector<BuilderPlan> builders, TrialTimerOptions timer,
                 BoardWatch watch, ExecutorShared shared,
                 std::shared_ptr<SpawnerClient> spawner);
  // Drops everything.
  ~DeviceExecutor();

  void Add(std::shared_ptr<Batch> batch);
  // The batch is stopped already; forgets it.
  void Remove(const std::shared_ptr<Batch>& batch);
  // See TrialRunner::Finish.
  void FinishTimed(const std::shared_ptr<Batch>& batch,
                   std::function<void()> idle);
  // See TrialRunner::UpdateDevice.
  void Update(const v1::DeviceInfo& device);

 private:
  // A trial of a batch.
  struct Place {
    std::shared_ptr<Batch> batch;
    size_t index = 0;
  };

  void BuildLoop(Builder* builder);
  Built Build(const Batch& batch, const v1::TrialSpec& spec,
              Builder* builder) const;
  void TimeLoop();
  // Waits for work; no batch when the executor ends.
  Place TakeToBuild();
  // No batch, too, when what waits for proof is to be proven first.
  std::shared_ptr<Batch> TakeToTime(std::vector<size_t>* indices);
  // The next trial of this kind, or none; with mutex_ held. Leaves out batches
  // that may start nothing any more.
  bool FindToBuild(Place* place);
  std::shared_ptr<Batch> FindToTime(std::vector<size_t>* indices);
  // Nothing is built or waits to be; with mutex_ held.
  bool NothingToCome() const;
  bool MayStart(const Batch& batch) const;
  // Of the timing thread: times trials, then finishes them or lets them wait.
  void Time(const std::shared_ptr<Batch>& batch,
            const std::vector<size_t>& indices);
  // Its result says nothing before the session's reference was looked at.
  bool NeedsProof(const v1::TrialResult& result) const;
  // Looks at the reference, then finishes all that waited for it: as they are
  // or, after a drift, as throttled.
  void ProveWaiting();
  std::optional<double> TimeReference(bool alone);
  void Pause(absl::Duration wait);
  void TellMeasuring();
  // Hands the result back, then lets the trial be done.
  void Finish(const std::shared_ptr<Batch>& batch, size_t index);
  // Ends a batch that is to be finished and of which nothing is timed.
  void EndIfIdle(const std::shared_ptr<Batch>& batch);
  v1::TrialResult NewResult(const Batch& batch, size_t index) const;

  const v1::DeviceInfo device_;  // as it was when this was made
  const CorePlan plan_;
  const BoardWatch watch_;
  const int cores_;
  const ExecutorShared shared_;
  const std::string boot_id_;
  const v1::Environment environment_;
  TrialTimer timer_;
  std::vector<std::unique_ptr<Builder>> builders_;

  // The timing thread's own; null: the device has no reference.
  std::unique_ptr<MeasuringSession> session_;
  std::vector<Place> waiting_;  // timed, unproven; their state is kTiming
  MeasuringState measuring_;

  std::mutex mutex_;  // guards what follows, and the states of all trials
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> batches_;  // oldest first
  std::atomic<bool> ending_ = false;            // written with mutex_ held
  std::vector<std::thread> threads_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_DEVICE_EXECUTOR_H_

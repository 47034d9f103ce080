// One assignment on its way through a device: where each of its trials is, and
// the handing back of results.
//
// Thread safety: the states are guarded by the executor's mutex; the rest may
// be used from any thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_BATCH_H_
#define REGATTA_DEVICE_AGENT_MEASURE_BATCH_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device_agent/measure/builder.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/measure/trial_timer.h"

namespace regatta {

class Batch : public RunControl {
 public:
  enum class State { kWaiting, kBuilding, kBuilt, kTiming, kDone };
  struct Trial {
    State state = State::kWaiting;
    Built built;
    SteadyTime built_at;
    v1::TrialResult result;
  };

  // `ticks` outlives it.
  Batch(v1::Assignment assignment, const TrialRunner::ResultCallback& on_result,
        std::atomic<int64_t>* ticks);

  const v1::Assignment& assignment() const { return assignment_; }
  const std::string& id() const { return assignment_.assignment_id(); }
  bool interleaved() const {
    return assignment_.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE;
  }
  std::vector<Trial>& trials() { return trials_; }

  // To be called once nothing of it is timed any more. Guarded by the
  // executor's mutex, like the states.
  void set_idle(std::function<void()> idle) { idle_ = std::move(idle); }
  std::function<void()> take_idle() { return std::exchange(idle_, nullptr); }

  // Hands the result of trial `index` back unless the batch was stopped. One at
  // a time per batch.
  void Deliver(size_t index);
  // After it returns no result is handed back. Waits for a callback in
  // progress, unless called from it. Kills the workers that run.
  void Stop();

  // RunControl:
  bool Stopped() const override { return stopped_.load(); }
  void Register(RunClient* worker) override;
  void Unregister(RunClient* worker) override;
  void Tick() override { ++*ticks_; }

 private:
  const v1::Assignment assignment_;
  const TrialRunner::ResultCallback& on_result_;
  std::atomic<int64_t>* const ticks_;
  std::vector<Trial> trials_;
  std::function<void()> idle_;
  std::atomic<bool> stopped_ = false;
  std::recursive_mutex delivery_;  // recursive: the callback may stop the batch
  size_t delivered_ = 0;
  std::mutex workers_mutex_;
  std::set<RunClient*> workers_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_BATCH_H_

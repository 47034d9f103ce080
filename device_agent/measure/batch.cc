#include "device_agent/measure/batch.h"

#include <utility>

namespace regatta {

Batch::Batch(v1::Assignment assignment,
             const TrialRunner::ResultCallback& on_result,
             std::atomic<int64_t>* ticks)
    : assignment_(std::move(assignment)),
      on_result_(on_result),
      ticks_(ticks),
      trials_(assignment_.trials_size()) {}

void Batch::Deliver(size_t index) {
  std::lock_guard<std::recursive_mutex> lock(delivery_);
  Tick();
  if (Stopped()) return;
  const bool last = ++delivered_ == trials_.size();
  on_result_(id(), std::move(trials_[index].result), last);
}

void Batch::Stop() {
  {
    std::lock_guard<std::mutex> lock(workers_mutex_);
    stopped_.store(true);
    for (RunClient* worker : workers_) worker->Kill();
  }
  std::lock_guard<std::recursive_mutex> wait(delivery_);
}

void Batch::Register(RunClient* worker) {
  std::lock_guard<std::mutex> lock(workers_mutex_);
  workers_.insert(worker);
  if (Stopped()) worker->Kill();
}

void Batch::Unregister(RunClient* worker) {
  std::lock_guard<std::mutex> lock(workers_mutex_);
  workers_.erase(worker);
}

}  // namespace regatta

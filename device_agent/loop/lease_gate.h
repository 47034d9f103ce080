// Whether an assignment may still start another trial.
//
// The loop sets how long; the runner asks from its own threads just before each
// trial. Both read the same clock, so a board that slept through its lease
// starts nothing on waking, whichever thread wakes first.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_DEVICE_AGENT_LOOP_LEASE_GATE_H_
#define REGATTA_DEVICE_AGENT_LOOP_LEASE_GATE_H_

#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"

namespace regatta {

class LeaseGate {
 public:
  explicit LeaseGate(const Clock* clock) : clock_(clock) {}

  // True until the assignment's time is up; false for unknown ones.
  bool MayStart(const std::string& assignment_id) const {
    std::lock_guard lock(mutex_);
    const auto it = until_.find(assignment_id);
    return it != until_.end() && clock_->Steady() < it->second;
  }
  void Open(const std::string& assignment_id, SteadyTime until) {
    std::lock_guard lock(mutex_);
    until_[assignment_id] = until;
  }
  void Close(const std::string& assignment_id) {
    std::lock_guard lock(mutex_);
    until_.erase(assignment_id);
  }

 private:
  const Clock* const clock_;
  mutable std::mutex mutex_;
  std::map<std::string, SteadyTime> until_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_LEASE_GATE_H_

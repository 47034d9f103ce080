// Limits of a process that an overloaded machine cannot make it exceed: time in
// which it was ready to run and got no processor does not count, as the
// kernel's scheduler counts it (/proc/PID/task/TID/schedstat). Sleeping counts.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_RUN_DELAY_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_RUN_DELAY_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {

// Nanoseconds, of the thread of `pid` that waited longest; sleeping is no
// waiting. 0 where the kernel does not tell. `proc` is "/proc" outside tests.
int64_t RunDelayNs(pid_t pid, const std::string& proc = "/proc");

// Not thread-safe.
class PatientLimit {
 public:
  // In all, a process may take this many times its limit.
  static constexpr int kFactor = 8;
  enum class State { kWithin, kReached, kStarved };

  // From `now` on.
  PatientLimit(pid_t pid, absl::Duration limit, SteadyTime now);
  // When to ask Check next.
  SteadyTime deadline() const { return deadline_; }
  // kWithin before the deadline, and when that moves because the process
  // waited; kStarved when it did not get `limit` of a processor in kFactor
  // times that.
  State Check(SteadyTime now);
  // What it waited, when Check last looked.
  int64_t starved_ns() const { return starved_ns_; }

 private:
  pid_t pid_;
  absl::Duration limit_;
  int64_t before_ns_, starved_ns_ = 0;
  SteadyTime started_, deadline_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_RUN_DELAY_H_

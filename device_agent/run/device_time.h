// Times that a driver tells, looked at before they count: a clock that is wrong
// is the board's failure and no result.
//
// Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_DEVICE_TIME_H_
#define REGATTA_DEVICE_AGENT_RUN_DEVICE_TIME_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "device_agent/run/module_runtime.h"

namespace regatta {

// When a call ran, by the device's clock.
struct CallSpan {
  uint64_t start_ns = 0, end_ns = 0;
};

// The host's real time around calls; absent without a clock.
class HostTime {
 public:
  // `clock` may be null; it outlives this.
  explicit HostTime(const Clock* clock) : clock_(clock) {}
  SteadyTime Now() const {
    return clock_ == nullptr ? SteadyTime{} : clock_->Steady();
  }
  std::optional<int64_t> Since(SteadyTime begun) const {
    if (clock_ == nullptr) return std::nullopt;
    return clock_->Steady().ns - begun.ns;
  }

 private:
  const Clock* const clock_;
};

// device_fault for a call that ends before it starts, or starts before the one
// ahead of it in the queue.
MaybeFailure CheckSpans(const std::vector<CallSpan>& spans);

// device_fault for a time of calls that is no number, negative, or so much
// longer than the host's time around them (`host_ns`, where that is known) that
// the clocks cannot be both right; and for no time at all, though the host
// counted hundreds of the device's ticks of `resolution_ns`.
MaybeFailure CheckElapsed(double elapsed_ns, int64_t resolution_ns,
                          std::optional<int64_t> host_ns);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_DEVICE_TIME_H_

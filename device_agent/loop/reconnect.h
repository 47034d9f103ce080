// How long to wait before the next try to reach the tracker.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_LOOP_RECONNECT_H_
#define REGATTA_DEVICE_AGENT_LOOP_RECONNECT_H_

#include <algorithm>

#include "absl/time/time.h"
#include "base/random.h"

namespace regatta {

class Reconnect {
 public:
  static constexpr int kQuickTries = 5;

  explicit Reconnect(Random random) : random_(random) {}

  // Failures in a row since the last success.
  int failures() const { return failures_; }
  void Succeeded() { failures_ = 0; }
  // A tracker that answered, if not for long: it is there, or comes back. The
  // next tries come within 2 s, however often this happened.
  void SucceededBriefly() {
    failures_ = std::min(failures_, kQuickTries + 1);
  }

  // Counts a failure. The first ones are a process being restarted near by:
  // 0.1-0.5 s. Then full jitter over a window that doubles from 1 s to 30 s, so
  // that a fleet does not come back in step; never under 0.1 s.
  absl::Duration Failed() {
    const int n = failures_++;
    if (n < kQuickTries)
      return Between(absl::Milliseconds(100), absl::Milliseconds(500));
    const absl::Duration window =
        std::min(absl::Seconds(30),
                 absl::Seconds(1) * (1 << std::min(n - kQuickTries, 5)));
    return Between(absl::Milliseconds(100), window);
  }

  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + (high - low) * random_.Unit();
  }

 private:
  Random random_;
  int failures_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_RECONNECT_H_

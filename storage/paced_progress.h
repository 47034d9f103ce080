// UpkeepProgress, asked often and told now and then.
#ifndef REGATTA_STORAGE_PACED_PROGRESS_H_
#define REGATTA_STORAGE_PACED_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "storage/log_upkeep.h"

namespace regatta {

// Not thread-safe.
class PacedProgress {
 public:
  // Soon enough for a person who waits for the end of what they stopped.
  static constexpr absl::Duration kInterval = absl::Milliseconds(100);

  // `progress` may be null and outlives it.
  explicit PacedProgress(const UpkeepProgress& progress,
                         absl::Duration interval = kInterval,
                         const Clock& clock = RealClock())
      : progress_(progress), interval_(interval), clock_(clock) {}

  // False, here and below: stop. Each phase is told at once.
  bool Begin(std::string phase, int64_t total) {
    phase_ = std::move(phase);
    done_ = 0;
    total_ = total;
    told_.reset();
    return GoOn();
  }
  void Done(int64_t done) { done_ = done; }
  bool GoOn() {
    if (!progress_) return true;
    const SteadyTime now = clock_.Steady();
    if (told_ && now - *told_ < interval_) return true;
    told_ = now;
    return progress_(phase_, done_, total_);
  }

 private:
  const UpkeepProgress& progress_;
  const absl::Duration interval_;
  const Clock& clock_;
  std::string phase_;
  int64_t done_ = 0, total_ = 0;
  std::optional<SteadyTime> told_;
};

}  // namespace regatta

#endif  // REGATTA_STORAGE_PACED_PROGRESS_H_

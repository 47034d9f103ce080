#include "base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace regatta {
namespace {

class MachineClock : public Clock {
 public:
  absl::Time Wall() const override { return absl::Now(); }
  SteadyTime Steady() const override {
    timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return {now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec};
  }
};

}  // namespace

const Clock& RealClock() {
  static const MachineClock* const clock = new MachineClock;
  return *clock;
}

absl::Time FakeClock::Wall() const {
  std::lock_guard lock(mutex_);
  return wall_;
}

SteadyTime FakeClock::Steady() const {
  std::lock_guard lock(mutex_);
  return steady_;
}

void FakeClock::Advance(absl::Duration d) {
  std::lock_guard lock(mutex_);
  wall_ += d;
  steady_ = steady_ + d;
}

}  // namespace regatta

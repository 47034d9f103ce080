// Time as an injected dependency. Wall time is for showing to people and for
// noting in records; steady time is for intervals, leases and deadlines. The
// two are different types so that they cannot be mixed.
//
// Thread safety: all methods of every Clock may be called from any thread.
#ifndef REGATTA_BASE_CLOCK_H_
#define REGATTA_BASE_CLOCK_H_

#include <cstdint>
#include <mutex>

#include "absl/time/time.h"

namespace regatta {

// A point on this machine's steady clock. Meaningless on any other machine and
// after a reboot: only differences may leave the process.
struct SteadyTime {
  int64_t ns = 0;
  friend auto operator<=>(const SteadyTime&, const SteadyTime&) = default;
  friend SteadyTime operator+(SteadyTime t, absl::Duration d) {
    return {t.ns + absl::ToInt64Nanoseconds(d)};
  }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) {
    return absl::Nanoseconds(a.ns - b.ns);
  }
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Wall() const = 0;
  // Counts suspended time too (CLOCK_BOOTTIME), so that leases expire.
  virtual SteadyTime Steady() const = 0;
};

// The machine's clocks. Never destroyed.
const Clock& RealClock();

// A clock that moves only when told to. For tests and simulations.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time wall = absl::UnixEpoch()) : wall_(wall) {}
  absl::Time Wall() const override;
  SteadyTime Steady() const override;
  void Advance(absl::Duration d);

 private:
  mutable std::mutex mutex_;
  absl::Time wall_;
  SteadyTime steady_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CLOCK_H_

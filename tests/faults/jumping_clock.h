// A clock that moves only when told to, whose wall time somebody may set while
// steady time goes on as it was.
#ifndef REGATTA_TESTS_FAULTS_JUMPING_CLOCK_H_
#define REGATTA_TESTS_FAULTS_JUMPING_CLOCK_H_

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta::faults {

// Not thread-safe.
class JumpingClock : public Clock {
 public:
  explicit JumpingClock(absl::Time wall) : time_(wall) {}
  absl::Time Wall() const override { return time_.Wall() + jumped_; }
  SteadyTime Steady() const override { return time_.Steady(); }
  void Advance(absl::Duration d) { time_.Advance(d); }
  void SetWall(absl::Time wall) { jumped_ = wall - time_.Wall(); }

 private:
  FakeClock time_;
  absl::Duration jumped_;
};

}  // namespace regatta::faults

#endif  // REGATTA_TESTS_FAULTS_JUMPING_CLOCK_H_

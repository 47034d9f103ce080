// A token bucket: so much a second on average, so much at once.
//
// Not thread-safe.
#ifndef REGATTA_PROTO_SECURITY_RATE_LIMIT_H_
#define REGATTA_PROTO_SECURITY_RATE_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {

class RateLimit {
 public:
  RateLimit(double per_second, double at_once, SteadyTime now)
      : per_second_(per_second), at_once_(at_once), left_(at_once), at_(now) {}

  // Takes `amount` if that much is there.
  bool Take(double amount, SteadyTime now) {
    Refill(now);
    if (left_ < amount) return false;
    left_ -= amount;
    return true;
  }

  // How long until `amount` is there.
  absl::Duration WaitFor(double amount, SteadyTime now) {
    Refill(now);
    return absl::Seconds(std::max(0.0, amount - left_) / per_second_);
  }

  // Takes `amount` whether it is there or not; returns how long to wait before
  // the next is taken.
  absl::Duration Owe(double amount, SteadyTime now) {
    Refill(now);
    left_ -= amount;
    if (left_ >= 0) return absl::ZeroDuration();
    return absl::Seconds(-left_ / per_second_);
  }

 private:
  void Refill(SteadyTime now) {
    left_ = std::min(at_once_,
                     left_ + per_second_ * absl::ToDoubleSeconds(now - at_));
    at_ = now;
  }

  double per_second_;
  double at_once_;
  double left_;  // below zero: owed
  SteadyTime at_;
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_RATE_LIMIT_H_

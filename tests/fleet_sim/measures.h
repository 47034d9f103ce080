// Times by their distribution, without keeping each.
#ifndef REGATTA_TESTS_FLEET_SIM_MEASURES_H_
#define REGATTA_TESTS_FLEET_SIM_MEASURES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/time/time.h"

namespace regatta::fleet_sim {

// Buckets 5 % wide from 10 us to hours. Not thread-safe.
class Histogram {
 public:
  void Add(absl::Duration time) {
    const double us = std::max(1.0, absl::ToDoubleMicroseconds(time) / 10);
    const auto at = static_cast<size_t>(std::log(us) / std::log(kStep));
    ++buckets_[std::min(at, buckets_.size() - 1)];
    ++count_;
    longest_ = std::max(longest_, time);
  }
  int64_t count() const { return count_; }
  absl::Duration longest() const { return longest_; }
  // The time that `share` of them do not exceed; rounded up by at most 5 %.
  absl::Duration Quantile(double share) const {
    const auto rank =
        static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
    int64_t seen = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank && seen > 0) {
        return std::min(longest_,
                        absl::Microseconds(
                            10 * std::pow(kStep, static_cast<double>(i + 1))));
      }
    }
    return longest_;
  }

 private:
  static constexpr double kStep = 1.05;
  std::array<int64_t, 420> buckets_{};
  int64_t count_ = 0;
  absl::Duration longest_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_MEASURES_H_

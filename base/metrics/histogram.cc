#include "base/metrics/histogram.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace regatta {

DurationHistogram::DurationHistogram(std::vector<double> bounds_s) {
  CHECK(std::is_sorted(bounds_s.begin(), bounds_s.end())) << "bounds";
  state_.counts.assign(bounds_s.size() + 1, 0);
  state_.bounds = std::move(bounds_s);
}

void DurationHistogram::Observe(absl::Duration duration) {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(duration));
  std::lock_guard lock(mutex_);
  const auto bucket =
      std::lower_bound(state_.bounds.begin(), state_.bounds.end(), seconds);
  ++state_.counts[bucket - state_.bounds.begin()];
  state_.sum += seconds;
}

HistogramSnapshot DurationHistogram::Snapshot() const {
  std::lock_guard lock(mutex_);
  return state_;
}

std::vector<double> LatencyBounds() {
  return {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};
}

std::vector<double> WorkBounds() {
  return {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};
}

}  // namespace regatta

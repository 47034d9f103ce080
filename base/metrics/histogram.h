// How often a duration fell between fixed bounds, and the sum of all.
//
// Thread-safe.
#ifndef REGATTA_BASE_METRICS_HISTOGRAM_H_
#define REGATTA_BASE_METRICS_HISTOGRAM_H_

#include <mutex>
#include <vector>

#include "absl/time/time.h"
#include "base/metrics/metrics_page.h"

namespace regatta {

class DurationHistogram {
 public:
  // Upper bounds in seconds, ascending; one that is met counts below it.
  explicit DurationHistogram(std::vector<double> bounds_s);

  // A duration below zero counts as zero.
  void Observe(absl::Duration duration);
  HistogramSnapshot Snapshot() const;

 private:
  mutable std::mutex mutex_;
  HistogramSnapshot state_;
};

// Bounds for what is done while somebody waits: 0.1 ms to 10 s.
std::vector<double> LatencyBounds();
// Bounds for work that takes its time: 10 ms to 5 minutes.
std::vector<double> WorkBounds();

}  // namespace regatta

#endif  // REGATTA_BASE_METRICS_HISTOGRAM_H_

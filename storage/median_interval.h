// The 95 % confidence interval of a median, from order statistics.
#ifndef REGATTA_STORAGE_MEDIAN_INTERVAL_H_
#define REGATTA_STORAGE_MEDIAN_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

// The middle value, or the mean of the middle two rounded down. REQUIRES: not
// empty.
int64_t Median(std::vector<int64_t> values);

// The narrowest interval [k-th smallest, k-th largest] of `sorted` that holds
// the median of what it was drawn from with at least 95 % probability. The
// number of draws below the true median is binomial(n, 1/2), so the interval
// misses it with probability 2 P(binomial(n, 1/2) < k), whatever the
// distribution. Nothing for fewer than 6 values: even [least, largest] of 5
// holds the median with 93.75 % only.
std::optional<std::pair<double, double>> MedianInterval(
    absl::Span<const double> sorted);

// The interval of the time per call, in ns, of a result's kept blocks, each
// block one draw. Rounded outwards.
std::optional<std::pair<int64_t, int64_t>> TimeInterval(
    const v1::TrialResult& result);

}  // namespace regatta

#endif  // REGATTA_STORAGE_MEDIAN_INTERVAL_H_

#include "storage/median_interval.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace regatta {

int64_t Median(std::vector<int64_t> values) {
  CHECK(!values.empty()) << "the median of nothing";
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

std::optional<std::pair<double, double>> MedianInterval(
    absl::Span<const double> sorted) {
  const int n = static_cast<int>(sorted.size());
  // Adds P(binomial = i) from i = 0 while the tail stays under 2.5 %; in
  // logarithms, because 2^-n underflows for large n.
  double tail = 0;
  int k = 0;
  while (k < n / 2) {
    tail += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) -
                     std::lgamma(n - k + 1.0) - n * std::log(2.0));
    if (tail > 0.025) break;
    ++k;
  }
  if (k == 0) return std::nullopt;
  return std::make_pair(sorted[k - 1], sorted[n - k]);
}

std::optional<std::pair<int64_t, int64_t>> TimeInterval(
    const v1::TrialResult& result) {
  std::vector<double> times;
  for (const v1::Block& block : result.blocks()) {
    if (block.throttled() || block.calls() <= 0) continue;
    times.push_back(static_cast<double>(block.elapsed_ns()) /
                    static_cast<double>(block.calls()));
  }
  std::sort(times.begin(), times.end());
  const auto interval = MedianInterval(times);
  if (!interval.has_value()) return std::nullopt;
  return std::make_pair(static_cast<int64_t>(std::floor(interval->first)),
                        static_cast<int64_t>(std::ceil(interval->second)));
}

}  // namespace regatta

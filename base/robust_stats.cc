#include "base/robust_stats.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace regatta {
namespace {

constexpr double kTail = 0.025;  // each side of a 95 % interval
constexpr double kNormalQuantile = 1.959963984540054;
constexpr size_t kExactPairs = 50;

double MedianOfSorted(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// Largest k with P(W+ < k) <= kTail for n pairs under the null hypothesis, that
// is, how many of the smallest Walsh averages lie below the interval.
size_t SignedRankCut(size_t n) {
  const size_t total = n * (n + 1) / 2;
  if (n > kExactPairs) {
    const double mean = static_cast<double>(total) / 2;
    const double deviation =
        std::sqrt(static_cast<double>(n * (n + 1) * (2 * n + 1)) / 24.0);
    return static_cast<size_t>(
        std::max(0.0, std::floor(mean - kNormalQuantile * deviation)));
  }
  // ways[w]: probability that a random subset of the ranks 1..n sums to w.
  std::vector<double> ways(total + 1, 0.0);
  ways[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank) {
    for (size_t w = total + 1; w-- > 0;) {
      ways[w] = ways[w] / 2 + (w >= rank ? ways[w - rank] / 2 : 0);
    }
  }
  size_t cut = 0;
  for (double below = ways[0]; below <= kTail; below += ways[cut]) ++cut;
  return cut;
}

}  // namespace

double Median(std::vector<double> values) {
  CHECK(!values.empty()) << "median of nothing";
  std::sort(values.begin(), values.end());
  return MedianOfSorted(values);
}

double MedianAbsoluteDeviation(const std::vector<double>& values) {
  const double median = Median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (double value : values) distances.push_back(std::abs(value - median));
  return Median(std::move(distances));
}

double Quantile(std::vector<double> values, double q) {
  CHECK(!values.empty()) << "quantile of nothing";
  CHECK(q >= 0 && q <= 1) << "quantile " << q;
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return values[below] + fraction * (values[above] - values[below]);
}

Interval MedianInterval95(std::vector<double> values) {
  CHECK(!values.empty()) << "interval of nothing";
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  // P(fewer than k of n values lie below the median) stays within the tail.
  // In logarithms, since 2^-n underflows for thousands of samples.
  const double scale = static_cast<double>(n) * std::log(2.0);
  double log_choose = 0, below = 0;
  size_t cut = 0;
  while (cut < n / 2) {
    below += std::exp(log_choose - scale);
    if (below > kTail) break;
    log_choose += std::log(static_cast<double>(n - cut)) -
                  std::log(static_cast<double>(cut + 1));
    ++cut;
  }
  const size_t low = cut == 0 ? 0 : cut - 1;
  return {values[low], values[n - 1 - low]};
}

Ratio PairedRatio(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size() && !a.empty())
      << "pairs of " << a.size() << " and " << b.size();
  const size_t n = a.size();
  std::vector<double> logs(n);
  for (size_t i = 0; i < n; ++i) {
    CHECK(a[i] > 0 && b[i] > 0) << "pair " << i << ": " << a[i] << ", " << b[i];
    logs[i] = std::log(a[i] / b[i]);
  }
  std::vector<double> walsh;
  walsh.reserve(n * (n + 1) / 2);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) walsh.push_back((logs[i] + logs[j]) / 2);
  }
  std::sort(walsh.begin(), walsh.end());
  const size_t cut = SignedRankCut(n);
  const size_t low = cut == 0 ? 0 : cut - 1;
  return {std::exp(MedianOfSorted(walsh)), std::exp(walsh[low]),
          std::exp(walsh[walsh.size() - 1 - low])};
}

}  // namespace regatta

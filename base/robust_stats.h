// Statistics of timings that do not flinch at a disturbed sample: medians,
// order statistics and rank intervals. No sample is ever dropped for being
// slow.
//
// Pure functions. Values are plain doubles of any one unit (ns per call);
// REQUIRES: all finite.
#ifndef REGATTA_BASE_ROBUST_STATS_H_
#define REGATTA_BASE_ROBUST_STATS_H_

#include <vector>

namespace regatta {

struct Interval {
  double low = 0;
  double high = 0;
};

// The middle value, or the mean of the two middle ones. REQUIRES: not empty.
double Median(std::vector<double> values);

// Median distance from the median, unscaled (multiply by 1.4826 to compare with
// a standard deviation). REQUIRES: not empty.
double MedianAbsoluteDeviation(const std::vector<double>& values);

// The value that a fraction `q` in [0, 1] of the values lies below, linear
// between neighbours (type 7 of Hyndman and Fan). REQUIRES: not empty.
double Quantile(std::vector<double> values, double q);

// A 95 % confidence interval of the median from order statistics: the tightest
// symmetric pair whose coverage, by the binomial distribution, is at least
// 95 %. With fewer than 6 values no pair reaches that: the smallest and largest
// value are given (93.75 % with 5). REQUIRES: not empty.
Interval MedianInterval95(std::vector<double> values);

// How many times as large a is as b.
struct Ratio {
  double ratio = 1;
  double low = 1;  // 95 % interval
  double high = 1;
};

// Ratio a/b of two series taken alternately: a[i] and b[i] share round i, so
// what disturbs a whole round cancels. The estimate is Hodges and Lehmann's
// (the median of the pairwise means of log(a[i]/b[i])), the interval the
// inversion of Wilcoxon's signed-rank test: exact up to 50 pairs, by the normal
// approximation beyond. With fewer than 6 pairs the test never reaches 95 %;
// the smallest and largest log-ratio are given. Speed-up of B over A is
// PairedRatio(a times, b times).
// REQUIRES: equal, non-zero lengths; all values positive.
Ratio PairedRatio(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace regatta

#endif  // REGATTA_BASE_ROBUST_STATS_H_

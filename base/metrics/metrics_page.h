// What a daemon says of itself when it is asked: families of samples, by the
// names and units that Prometheus's users expect
// (https://prometheus.io/docs/practices/naming/). docs/metrics.md lists them.
//
// Whoever counts keeps plain numbers or Histograms and writes them to a page
// when one is collected; only the endpoint knows the format.
//
// Not thread-safe.
#ifndef REGATTA_BASE_METRICS_METRICS_PAGE_H_
#define REGATTA_BASE_METRICS_METRICS_PAGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regatta {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

enum class MetricKind { kCounter, kGauge, kHistogram };

struct HistogramSnapshot {
  std::vector<double> bounds;    // upper, ascending; the last bucket has none
  std::vector<uint64_t> counts;  // of each bucket, one more than bounds
  double sum = 0;
  uint64_t Count() const;
};

struct MetricSample {
  MetricLabels labels;
  double value = 0;
  HistogramSnapshot histogram;  // instead of the value
};

struct MetricFamily {
  std::string name;
  std::string help;
  MetricKind kind = MetricKind::kGauge;
  std::vector<MetricSample> samples;
};

class MetricsPage {
 public:
  // Samples of one name stand together; the first one's help counts. REQUIRES:
  // a name and labels as Prometheus has them, a name's kind is always the same,
  // and no two samples of a name have the same labels.
  void Counter(std::string_view name, std::string_view help, double value,
               MetricLabels labels = {});
  void Gauge(std::string_view name, std::string_view help, double value,
             MetricLabels labels = {});
  void Histogram(std::string_view name, std::string_view help,
                 HistogramSnapshot histogram, MetricLabels labels = {});

  // All of another page, whose names are not here yet.
  void Append(MetricsPage other);

  const std::vector<MetricFamily>& families() const { return families_; }

 private:
  MetricFamily& Family(std::string_view name, std::string_view help,
                       MetricKind kind);

  std::vector<MetricFamily> families_;
};

// Fills a page, on any thread, while the daemon works.
using CollectMetrics = std::function<void(MetricsPage&)>;

}  // namespace regatta

#endif  // REGATTA_BASE_METRICS_METRICS_PAGE_H_

#include "base/metrics/metrics_page.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace regatta {
namespace {

// The characters that Prometheus takes for names of metrics and labels, but for
// colons, which are its own.
bool IsName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return letter(c) || (c >= '0' && c <= '9');
         });
}

}  // namespace

uint64_t HistogramSnapshot::Count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

MetricFamily& MetricsPage::Family(std::string_view name, std::string_view help,
                                  MetricKind kind) {
  for (MetricFamily& family : families_) {
    if (family.name != name) continue;
    CHECK(family.kind == kind) << "two kinds of metric " << name;
    return family;
  }
  CHECK(IsName(name)) << "no name of a metric: " << name;
  MetricFamily& family = families_.emplace_back();
  family.name = name;
  family.help = help;
  family.kind = kind;
  return family;
}

void MetricsPage::Counter(std::string_view name, std::string_view help,
                          double value, MetricLabels labels) {
  Family(name, help, MetricKind::kCounter)
      .samples.push_back({std::move(labels), value, {}});
}

void MetricsPage::Gauge(std::string_view name, std::string_view help,
                        double value, MetricLabels labels) {
  Family(name, help, MetricKind::kGauge)
      .samples.push_back({std::move(labels), value, {}});
}

void MetricsPage::Append(MetricsPage other) {
  for (MetricFamily& family : other.families_) {
    families_.push_back(std::move(family));
  }
}

void MetricsPage::Histogram(std::string_view name, std::string_view help,
                            HistogramSnapshot histogram, MetricLabels labels) {
  CHECK(histogram.counts.size() == histogram.bounds.size() + 1)
      << name << ": " << histogram.counts.size() << " buckets";
  Family(name, help, MetricKind::kHistogram)
      .samples.push_back({std::move(labels), 0, std::move(histogram)});
}

}  // namespace regatta

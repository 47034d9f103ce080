#include "base/metrics/metrics_endpoint.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/host_port.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

prometheus::MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  CHECK(false) << "a kind of metric";
}

// Prometheus's buckets count everything up to their bound.
prometheus::ClientMetric::Histogram Convert(const HistogramSnapshot& from) {
  prometheus::ClientMetric::Histogram to;
  to.sample_count = from.Count();
  to.sample_sum = from.sum;
  uint64_t below = 0;
  for (size_t i = 0; i < from.bounds.size(); ++i) {
    below += from.counts[i];
    prometheus::ClientMetric::Bucket bucket;
    bucket.cumulative_count = below;
    bucket.upper_bound = from.bounds[i];
    to.bucket.push_back(bucket);
  }
  return to;
}

prometheus::ClientMetric Convert(const MetricSample& sample, MetricKind kind) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : sample.labels) {
    metric.label.push_back({name, value});
  }
  switch (kind) {
    case MetricKind::kCounter:
      metric.counter.value = sample.value;
      break;
    case MetricKind::kGauge:
      metric.gauge.value = sample.value;
      break;
    case MetricKind::kHistogram:
      metric.histogram = Convert(sample.histogram);
      break;
  }
  return metric;
}

class Collector : public prometheus::Collectable {
 public:
  explicit Collector(CollectMetrics collect) : collect_(std::move(collect)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    MetricsPage page;
    collect_(page);
    std::vector<prometheus::MetricFamily> families;
    for (const MetricFamily& from : page.families()) {
      prometheus::MetricFamily& to = families.emplace_back();
      to.name = from.name;
      to.help = from.help;
      to.type = TypeOf(from.kind);
      for (const MetricSample& sample : from.samples) {
        to.metric.push_back(Convert(sample, from.kind));
      }
    }
    return families;
  }

 private:
  const CollectMetrics collect_;
};

class ExposerEndpoint : public MetricsEndpoint {
 public:
  ExposerEndpoint(const std::string& listen, const std::string& host,
                  CollectMetrics collect)
      : collector_(std::make_shared<Collector>(std::move(collect))),
        // Connections that send nothing hold a thread each until the limit.
        exposer_(std::vector<std::string>{"listening_ports", listen,
                                          "num_threads", "16",
                                          "request_timeout_ms", "1000"}) {
    exposer_.RegisterCollectable(collector_);
    const std::vector<int> ports = exposer_.GetListeningPorts();
    address_ = absl::StrCat(host, ":", ports.empty() ? 0 : ports.front());
  }

  const std::string& address() const override { return address_; }

 private:
  std::string address_;
  const std::shared_ptr<Collector> collector_;
  // Last: its threads end before what they collect from.
  prometheus::Exposer exposer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, CollectMetrics collect) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  const auto& [host, port] = host_port;
  // Civetweb wants numbers.
  const std::string number = host == "localhost" ? "127.0.0.1" : host;
  try {
    return std::make_unique<ExposerEndpoint>(absl::StrCat(number, ":", port),
                                             host, std::move(collect));
  } catch (const std::exception& error) {
    const std::string why = WhyNotListening(number, port);
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     " for metrics: ", why.empty() ? error.what() : why));
  }
}

}  // namespace regatta

#include "base/metrics/metrics_endpoint.h"

#include <CivetServer.h>
#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/host_port.h"
#include "base/listening_socket.h"
#include "base/log.h"
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

constexpr std::string_view kPath = "/metrics";
// Another process may take a free one before Civetweb does.
constexpr int kPortsTried = 16;

// The exposer knows GET alone. The page's length is that of its moment, and a
// HEAD need not tell it.
int AnswerHead(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  if (std::string_view(request->request_method) != "HEAD" ||
      request->local_uri == nullptr || request->local_uri != kPath) {
    return 0;  // whoever else knows it
  }
  mg_printf(connection,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Connection: close\r\n\r\n");
  return 200;
}

CivetCallbacks Callbacks() {
  CivetCallbacks callbacks;
  callbacks.begin_request = AnswerHead;
  return callbacks;
}

constexpr char kNoIpv6[] =
    "the Civetweb of this machine was built without IPv6";

// Those that Civetweb can listen on. Unavailable: there is none.
absl::StatusOr<std::vector<std::string>> Servable(
    const std::vector<std::string>& addresses) {
  std::vector<std::string> served = addresses;
  if (mg_check_feature(MG_FEATURES_IPV6) == 0) {
    std::erase_if(served, [](const std::string& address) {
      return address.starts_with('[');
    });
  }
  if (!served.empty()) return served;
  return absl::UnavailableError(absl::StrCat(
      "metrics: cannot listen on ", absl::StrJoin(addresses, " and "), ": ",
      kNoIpv6, "; name an address of IPv4, such as 127.0.0.1"));
}

class ExposerEndpoint : public MetricsEndpoint {
 public:
  // `listen`: numbers, ADDRESS:PORT each.
  ExposerEndpoint(const std::vector<std::string>& listen, std::string address,
                  CollectMetrics collect)
      : address_(std::move(address)),
        collector_(std::make_shared<Collector>(std::move(collect))),
        callbacks_(Callbacks()),
        // Connections that send nothing hold a thread each until the limit.
        exposer_(
            std::vector<std::string>{"listening_ports",
                                     absl::StrJoin(listen, ","), "num_threads",
                                     "16", "request_timeout_ms", "1000"},
            &callbacks_) {
    exposer_.RegisterCollectable(collector_, std::string(kPath));
  }

  const std::string& address() const override { return address_; }

 private:
  const std::string address_;
  const std::shared_ptr<Collector> collector_;
  const CivetCallbacks callbacks_;
  // Last: its threads end before what they collect from.
  prometheus::Exposer exposer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, CollectMetrics collect) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  std::string failed;
  for (int attempt = 0; attempt < kPortsTried; ++attempt) {
    // Civetweb wants numbers and sockets of its own: where this finds room is
    // left to it at once.
    auto listening = ListenOn(address);
    if (!listening.ok()) return Annotate(listening.status(), "metrics");
    const std::vector<std::string> all = AddressesOf(*listening);
    ASSIGN_OR_RETURN(const std::vector<std::string> served, Servable(all));
    const std::string bound =
        absl::StrCat(host_port.first, ":", listening->port);
    listening->fds.clear();
    try {
      auto endpoint = std::make_unique<ExposerEndpoint>(served, bound, collect);
      if (served != all) {
        LOG(kWarning) << "metrics: on " << absl::StrJoin(served, " and ")
                      << " alone, of " << absl::StrJoin(all, " and ") << ": "
                      << kNoIpv6;
      }
      return endpoint;
    } catch (const std::exception& error) {
      failed = absl::StrCat("metrics: cannot listen on ",
                            absl::StrJoin(served, " and "), ": ", error.what());
    }
    if (host_port.second != 0) break;
  }
  return absl::UnavailableError(failed);
}

}  // namespace regatta

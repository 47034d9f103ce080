// The flags of a daemon's page of metrics, the same for every daemon.
#ifndef REGATTA_PROTO_SECURITY_METRICS_FLAGS_H_
#define REGATTA_PROTO_SECURITY_METRICS_FLAGS_H_

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/listening_socket.h"
#include "base/metrics/metrics_endpoint.h"
#include "base/status_macros.h"

namespace regatta {

struct MetricsFlags {
  std::string listen;  // "": nothing is served
  bool insecure = false;
};

// `App`: CLI::App.
template <typename App>
void AddMetricsFlags(App* app, MetricsFlags* flags) {
  app->add_option("--metrics", flags->listen,
                  "Address where http://HOST:PORT/metrics answers in "
                  "Prometheus's format; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->default_str("none");
  app->add_flag("--metrics-insecure-plaintext", flags->insecure,
                "Serve metrics to other machines, too: whoever reaches the "
                "port may read them, and no TLS protects them");
}

// InvalidArgument, with what to do, where other machines could read them and
// that is not wanted. Before anything is made.
inline absl::Status CheckMetrics(const MetricsFlags& flags) {
  if (flags.listen.empty()) return absl::OkStatus();
  const auto parts = SplitHostPort(flags.listen);
  if (!parts.ok()) return Annotate(parts.status(), "--metrics");
  if (flags.insecure || IsLoopback(parts->first)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics: ", flags.listen,
      " is not on this machine alone, and the page is plain HTTP: serve it on "
      "127.0.0.1 and let the scraper come through a proxy with TLS or ssh; or, "
      "on a network that you trust wholly, --metrics-insecure-plaintext"));
}

// nullptr where no page is wanted; else says on standard output where it is.
inline absl::StatusOr<std::unique_ptr<MetricsEndpoint>> StartMetrics(
    const MetricsFlags& flags, CollectMetrics collect) {
  if (flags.listen.empty()) return std::unique_ptr<MetricsEndpoint>();
  RETURN_IF_ERROR(CheckMetrics(flags));
  ASSIGN_OR_RETURN(auto endpoint,
                   MetricsEndpoint::Start(flags.listen, std::move(collect)));
  std::cout << "metrics on " << endpoint->address() << std::endl;
  return endpoint;
}

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_METRICS_FLAGS_H_

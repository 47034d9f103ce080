// Where prometheus-cpp is missing.
#include "base/metrics/metrics_endpoint.h"

namespace regatta {

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, CollectMetrics collect) {
  return absl::UnimplementedError(
      "--metrics: this program was built without prometheus-cpp; install "
      "prometheus-cpp-dev and build it again");
}

}  // namespace regatta

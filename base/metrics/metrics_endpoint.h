// Answers GET /metrics in Prometheus's text format, through prometheus-cpp, and
// HEAD with the same head but for the length.
//
// Plain HTTP and open to whoever reaches the port: who starts it sees to it
// that only this machine does (metrics_flags.h).
#ifndef REGATTA_BASE_METRICS_METRICS_ENDPOINT_H_
#define REGATTA_BASE_METRICS_METRICS_ENDPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/metrics/metrics_page.h"

namespace regatta {

// Thread-safe.
class MetricsEndpoint {
 public:
  // Listens on `address`, HOST:PORT, as ListenOn does: on all that the host's
  // name stands for, but for what Civetweb cannot, which the log names. Port 0 picks a free one. `collect` is called for every
  // scrape until the endpoint is gone. Unavailable: which address cannot be
  // listened on, and why. Unimplemented: this program was built without
  // prometheus-cpp.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& address, CollectMetrics collect);
  virtual ~MetricsEndpoint() = default;

  // HOST:PORT with the port in use.
  virtual const std::string& address() const = 0;
};

}  // namespace regatta

#endif  // REGATTA_BASE_METRICS_METRICS_ENDPOINT_H_

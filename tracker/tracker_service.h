// The whole tracker on one port: core, its thread, both gRPC services.
#ifndef REGATTA_TRACKER_TRACKER_SERVICE_H_
#define REGATTA_TRACKER_TRACKER_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/authority.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "base/metrics/metrics_page.h"
#include "base/random.h"
#include "proto/security/audit_log.h"
#include "proto/security/connection_gate.h"
#include "tracker/fleet_store.h"
#include "tracker/tracker_options.h"

namespace regatta {

// Who is let in, and what is written down. Nothing is owned but what is shared;
// the rest outlives the service.
struct TrackerSecurity {
  std::shared_ptr<TlsIdentity> tls;  // nullptr: plain text
  bool insecure_plaintext = false;
  AuditLog* audit = nullptr;       // nullptr: nothing is written down
  Authority* authority = nullptr;  // nullptr: certificates come from elsewhere
  // Where newcomers join, HOST:PORT; "": nowhere. Wants tls and authority.
  std::string enrol;
  GateLimits gate;
};

class TrackerService {
 public:
  // Listens on `address`, HOST:PORT; port 0 picks a free one. InvalidArgument:
  // plain text where others can reach it. Unavailable: the address cannot be
  // listened on; says why. The references outlive the service.
  static absl::StatusOr<std::unique_ptr<TrackerService>> Start(
      const std::string& address, const TrackerOptions& options,
      const Clock& clock, Random& random, FleetStore& store,
      const TrackerSecurity& security = {});
  // Ends at once, without goodbye.
  ~TrackerService();

  // HOST:PORT with the port in use.
  const std::string& address() const;
  // The same of the enrolment port; "": there is none.
  std::string enrol_address() const;

  // Its page of metrics, as it is between two inputs; at most 5 s. From any
  // thread, until Stop.
  void Collect(MetricsPage& page) const;

  // Says goodbye to agents, closes all streams; returns within about `grace`.
  void Stop(absl::Duration grace);

 private:
  struct Parts;
  explicit TrackerService(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_TRACKER_SERVICE_H_

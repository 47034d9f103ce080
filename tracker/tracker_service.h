// The whole tracker on one port: core, its thread, both gRPC services.
#ifndef REGATTA_TRACKER_TRACKER_SERVICE_H_
#define REGATTA_TRACKER_TRACKER_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"
#include "tracker/fleet_store.h"
#include "tracker/tracker_options.h"

namespace regatta {

class TrackerService {
 public:
  // Listens on `address`, HOST:PORT; port 0 picks a free one. Unavailable:
  // the address cannot be listened on; says why. The references outlive the
  // service.
  static absl::StatusOr<std::unique_ptr<TrackerService>> Start(
      const std::string& address, const TrackerOptions& options,
      const Clock& clock, Random& random, FleetStore& store);
  // Ends at once, without goodbye.
  ~TrackerService();

  // HOST:PORT with the port in use.
  const std::string& address() const;

  // Says goodbye to agents, closes all streams; returns within about `grace`.
  void Stop(absl::Duration grace);

 private:
  struct Parts;
  explicit TrackerService(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_TRACKER_SERVICE_H_

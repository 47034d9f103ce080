// The dispatcher over gRPC: one stream to the tracker, opened again for ever.
//
// Reconnects after 100 ms, doubling to 2 s, and starts over once attached. A
// try has 30 s: the tracker may be far away, or have a whole fleet before it.
// Listener calls come from one thread of its own.
//
// Thread safety: all methods may be called from any thread; Start and Stop once
// each, in that order.
#ifndef REGATTA_SERVER_TRACKER_CLIENT_H_
#define REGATTA_SERVER_TRACKER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/certs/tls_identity.h"
#include "regatta/v1/security_service.pb.h"
#include "server/job/dispatcher.h"

namespace regatta {

class TrackerClient : public Dispatcher {
 public:
  // `server_id` names the tuning log. `tls`: nullptr for plain text; each
  // stream is opened with the identity of the moment.
  TrackerClient(std::string address, std::string server_id,
                std::shared_ptr<TlsIdentity> tls = nullptr);
  ~TrackerClient() override;

  // Connects, now and whenever the stream ends. `listener` outlives Stop.
  void Start(Listener* listener);
  // Ends the stream and joins the threads; no listener call comes after.
  void Stop();

  void Submit(std::vector<v1::Work> work) override;
  void CancelWork(const v1::CancelWork& cancel) override;
  void Acknowledge(const v1::CommitAck& ack) override;
  void Reattach() override;
  void OfferCanaries(const v1::Canaries& canaries) override;
  void AskFleet() override;

  // Every device that the tracker knows, as it says now. Unavailable names the
  // tracker's address.
  absl::StatusOr<v1::ListDevicesResponse> ListDevices();
  // Its audit; likewise.
  absl::StatusOr<v1::ListAuditResponse> ListAudit(int64_t limit);
  // The tracker's own answers and errors; Unavailable as above.
  absl::StatusOr<v1::ControlDevicesResponse> ControlDevices(
      const v1::ControlDevicesRequest& request);
  absl::StatusOr<v1::DeviceHistoryResponse> DeviceHistory(
      const v1::DeviceHistoryRequest& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_TRACKER_CLIENT_H_

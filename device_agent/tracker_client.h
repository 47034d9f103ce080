// The agent's stream to the tracker over gRPC (FleetService.Session).
//
// Every Open uses a channel of its own, so that gRPC's own waiting between
// tries, which grows to minutes, never adds to the loop's. Keepalive: a ping
// after 30 s without traffic, 10 s for its answer; the heartbeats are the first
// line, the pings catch a tracker whose machine is gone.
#ifndef REGATTA_DEVICE_AGENT_TRACKER_CLIENT_H_
#define REGATTA_DEVICE_AGENT_TRACKER_CLIENT_H_

#include <memory>
#include <mutex>
#include <string>

#include "base/certs/tls_identity.h"
#include "device_agent/loop/tracker_connection.h"

namespace regatta {

class TrackerClient : public TrackerConnection {
 public:
  // `address`: HOST:PORT. Nothing is dialled before Open. `tls`: nullptr for
  // plain text; each Open takes the certificate of its day.
  explicit TrackerClient(std::string address,
                         std::shared_ptr<TlsIdentity> tls = nullptr);
  ~TrackerClient() override;  // as Close(0)

  void Open(Callbacks callbacks) override;
  void Send(v1::AgentMessage message) override;
  void Close(absl::Duration linger) override;

 private:
  class Stream;

  const std::string address_;
  const std::shared_ptr<TlsIdentity> tls_;
  std::mutex mutex_;
  std::shared_ptr<Stream> stream_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_TRACKER_CLIENT_H_

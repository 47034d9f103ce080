// One connection to the tracker at a time, as the agent's runtime needs it.
// device_agent/tracker_client.h has the real one.
//
// Thread safety: all methods may be called from any thread. Callbacks come from
// the connection's own threads, one at a time.
#ifndef REGATTA_DEVICE_AGENT_LOOP_TRACKER_CONNECTION_H_
#define REGATTA_DEVICE_AGENT_LOOP_TRACKER_CONNECTION_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

class TrackerConnection {
 public:
  struct Callbacks {
    std::function<void(v1::TrackerMessage)> on_message;
    // Exactly once per Open that was not closed first: it failed or ended.
    std::function<void(absl::Status)> on_closed;
  };

  virtual ~TrackerConnection() = default;

  // Begins a new connection; one that is still open is cut off first, and its
  // callbacks no longer come. Messages may be sent at once.
  virtual void Open(Callbacks callbacks) = 0;
  // Queues a message; dropped when the connection is gone.
  virtual void Send(v1::AgentMessage message) = 0;
  // Ends the connection; no callback comes after that. What was sent before is
  // delivered if the tracker takes it within `linger`, which this waits for.
  virtual void Close(absl::Duration linger) = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_TRACKER_CONNECTION_H_

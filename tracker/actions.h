// What the tracker core wants done to the outside world, in order.
#ifndef REGATTA_TRACKER_ACTIONS_H_
#define REGATTA_TRACKER_ACTIONS_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tracker/config/fleet_config.h"

namespace regatta {

// An agent's stream and a server's stream. Numbers are given by the caller and
// never used twice in a process.
enum class SessionId : uint64_t {};
enum class StreamId : uint64_t {};

struct SendToAgent {
  SessionId session;
  v1::TrackerMessage message;
};
// After everything sent to the session so far. The core forgets the session:
// what it says afterwards is ignored.
struct CloseSession {
  SessionId session;
  absl::Status status;
};
struct SendToServer {
  StreamId stream;
  v1::DispatchEvent event;
};
struct CloseServer {
  StreamId stream;
  absl::Status status;
};
// For the audit: who was refused what, and why.
struct Refusal {
  SessionId session;
  std::string who;
  std::string what;
  std::string why;
};
// Carries the command out; TrackerCore::PowerDone is called when it has ended.
struct SwitchPower {
  std::string device_id;
  PowerCommand command;
};
// Something happened to a device, for whom it concerns outside.
struct Announce {
  v1::DeviceEvent event;
};
using Action = std::variant<SendToAgent, CloseSession, SendToServer,
                            CloseServer, SwitchPower, Announce, Refusal>;

}  // namespace regatta

#endif  // REGATTA_TRACKER_ACTIONS_H_

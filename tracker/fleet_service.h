// FleetService over gRPC: translates streams into inputs of the core and its
// actions into messages. All rules are in the core.
#ifndef REGATTA_TRACKER_FLEET_SERVICE_H_
#define REGATTA_TRACKER_FLEET_SERVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tracker/actions.h"
#include "tracker/core_loop.h"
#include "tracker/stream_service.h"
#include "tracker/stream_table.h"
#include "tracker/tracker_options.h"

namespace regatta {

class FleetServiceImpl : public v1::FleetService::CallbackService {
 public:
  // `options`: how fast an agent's messages are read. `clock` outlives it.
  FleetServiceImpl(CoreLoop& loop, const TrackerOptions& options,
                   const Clock& clock)
      : loop_(loop), options_(options), clock_(clock) {}

  grpc::ServerBidiReactor<v1::AgentMessage, v1::TrackerMessage>* Session(
      grpc::CallbackServerContext* context) override;

  // Nothing happens when the session is gone.
  void Send(SessionId session, v1::TrackerMessage message);
  void Close(SessionId session, const absl::Status& status);
  // The peer, as gRPC calls it; "": the session is gone.
  std::string From(SessionId session) const;

 private:
  using Reactor = StreamReactor<v1::AgentMessage, v1::TrackerMessage>;
  CoreLoop& loop_;
  const TrackerOptions options_;
  const Clock& clock_;
  StreamTable<SessionId, Reactor> sessions_;
  mutable std::mutex mutex_;
  std::map<SessionId, std::string> peers_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_FLEET_SERVICE_H_

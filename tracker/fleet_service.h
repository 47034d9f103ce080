// FleetService over gRPC: translates streams into inputs of the core and its
// actions into messages. All rules are in the core.
#ifndef REGATTA_TRACKER_FLEET_SERVICE_H_
#define REGATTA_TRACKER_FLEET_SERVICE_H_

#include <memory>

#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tracker/actions.h"
#include "tracker/core_loop.h"
#include "tracker/stream_service.h"
#include "tracker/stream_table.h"

namespace regatta {

class FleetServiceImpl : public v1::FleetService::CallbackService {
 public:
  explicit FleetServiceImpl(CoreLoop& loop) : loop_(loop) {}

  grpc::ServerBidiReactor<v1::AgentMessage, v1::TrackerMessage>* Session(
      grpc::CallbackServerContext* context) override;

  // Nothing happens when the session is gone.
  void Send(SessionId session, v1::TrackerMessage message);
  void Close(SessionId session, const absl::Status& status);

 private:
  using Reactor = StreamReactor<v1::AgentMessage, v1::TrackerMessage>;
  CoreLoop& loop_;
  StreamTable<SessionId, Reactor> sessions_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_FLEET_SERVICE_H_

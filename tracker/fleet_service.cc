#include "tracker/fleet_service.h"

#include <utility>

namespace regatta {
namespace {

// An agent's queue is bounded by its credit; this only stops one that does not
// read at all.
constexpr int64_t kMaxQueuedBytes = int64_t{4} << 20;

}  // namespace

grpc::ServerBidiReactor<v1::AgentMessage, v1::TrackerMessage>*
FleetServiceImpl::Session(grpc::CallbackServerContext* context) {
  std::shared_ptr<Reactor> reactor = Reactor::Make(kMaxQueuedBytes);
  const SessionId session = sessions_.Add(reactor);
  loop_.Post([session](TrackerCore& core) { core.SessionOpened(session); });
  reactor->Begin({[this, session, reactor](v1::AgentMessage message) {
                    loop_.Post([session, reactor, message = std::move(message)](
                                   TrackerCore& core) {
                      core.AgentSaid(session, message);
                      reactor->ReadNext();
                    });
                  },
                  [this, session] {
                    sessions_.Remove(session);
                    loop_.Post([session](TrackerCore& core) {
                      core.SessionClosed(session);
                    });
                  }});
  return reactor.get();
}

void FleetServiceImpl::Send(SessionId session, v1::TrackerMessage message) {
  if (auto reactor = sessions_.Find(session)) reactor->Send(std::move(message));
}

void FleetServiceImpl::Close(SessionId session, const absl::Status& status) {
  if (auto reactor = sessions_.Find(session)) reactor->Close(status);
}

}  // namespace regatta

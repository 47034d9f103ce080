#include "tracker/fleet_service.h"

#include <algorithm>
#include <utility>

#include "proto/security/access_service.h"
#include "proto/security/rate_limit.h"

namespace regatta {
namespace {

// An agent's queue is bounded by its credit; this only stops one that does not
// read at all.
constexpr int64_t kMaxQueuedBytes = int64_t{4} << 20;

// Of gRPC's name for a peer: "ipv4:127.0.0.1:40000", "ipv6:%5B::1%5D:40000".
bool IsLocalPeer(const std::string& peer) {
  return peer.starts_with("ipv4:127.") || peer.starts_with("ipv6:[::1]") ||
         peer.starts_with("ipv6:%5B::1%5D") || peer.starts_with("unix:");
}

// How fast one session's messages are read.
struct Pace {
  RateLimit messages;
  RateLimit bytes;

  Pace(const TrackerOptions& options, SteadyTime now)
      : messages(options.messages_per_second, 2 * options.messages_per_second,
                 now),
        bytes(options.bytes_per_second, 2 * options.bytes_per_second, now) {}

  // How long the next message has to wait after one of this size.
  absl::Duration Owe(size_t size, SteadyTime now) {
    return std::max(messages.Owe(1, now),
                    bytes.Owe(static_cast<double>(size), now));
  }
};

}  // namespace

grpc::ServerBidiReactor<v1::AgentMessage, v1::TrackerMessage>*
FleetServiceImpl::Session(grpc::CallbackServerContext* context) {
  std::shared_ptr<Reactor> reactor =
      Reactor::Make(context, kMaxQueuedBytes, options_.unread);
  const SessionId session = sessions_.Add(reactor);
  SessionCaller caller;
  caller.identity = PeerOf(*context);
  caller.local = IsLocalPeer(context->peer());
  {
    std::lock_guard lock(mutex_);
    peers_[session] = context->peer();
  }
  loop_.Post([session, caller = std::move(caller)](TrackerCore& core) {
    core.SessionOpened(session, caller);
  });
  auto pace = std::make_shared<Pace>(options_, clock_.Steady());
  reactor->Begin({[this, session, reactor, pace](v1::AgentMessage message) {
                    const absl::Duration wait =
                        pace->Owe(message.ByteSizeLong(), clock_.Steady());
                    loop_.Post(
                        [session, reactor, wait,
                         message = std::move(message)](TrackerCore& core) {
                          core.AgentSaid(session, message);
                          Reactor::ReadNextAfter(reactor, wait);
                        });
                  },
                  [this, session] {
                    sessions_.Remove(session);
                    loop_.Post([this, session](TrackerCore& core) {
                      core.SessionClosed(session);
                      std::lock_guard lock(mutex_);
                      peers_.erase(session);
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

std::string FleetServiceImpl::From(SessionId session) const {
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(session);
  return found == peers_.end() ? "" : found->second;
}

}  // namespace regatta

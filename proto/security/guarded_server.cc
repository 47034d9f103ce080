#include "proto/security/guarded_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/listening_socket.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/security/access_service.h"
#include "proto/security/credentials_service.h"
#include "proto/security/exposure.h"
#include "proto/security/rate_limit.h"

namespace regatta {
namespace {

// A handshake that takes longer is given up.
constexpr int kHandshakeMs = 10'000;
// A connection without a call for this long is closed; its client opens
// another when it needs one.
constexpr int kIdleMs = 600'000;
// One that has not made any allowed call is closed sooner: it counts against
// its address. A client that hung up while it waited to be let in can leave its
// connection open.
constexpr absl::Duration kUnproven = absl::Seconds(30);
constexpr int kMaxStreamsPerConnection = 256;
constexpr int kMaxMetadataBytes = 16 << 10;
// Handshakes cost; a fleet that comes back at once is let in at this pace. The
// rest waits here: what the kernel's own queue has no room for it forgets, and
// a client hears of that half a minute later.
constexpr double kConnectionsPerSecond = 500;
constexpr size_t kMostWaiting = 8'192;
constexpr absl::Duration kTick = absl::Seconds(1);
// Seconds until a changed folder or a revocation counts for calls that go on.
constexpr int kTicksPerRefresh = 5;

void Harden(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              kHandshakeMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
}

}  // namespace

// The thread that accepts, and looks after what it accepted.
class GuardedServer::Listener {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  Listener(Listening listening, const ServerGuard& guard)
      : listening_(std::move(listening)),
        guard_(guard),
        stop_(eventfd(0, EFD_CLOEXEC)),
        gate_(guard.gate) {}
  ~Listener() { Stop(); }

  // `each_refresh` is called every few seconds.
  void Start(std::unique_ptr<Acceptor> acceptor,
             std::function<void()> each_refresh) {
    acceptor_ = std::move(acceptor);
    each_refresh_ = std::move(each_refresh);
    thread_ = std::thread([this] { Run(); });
  }

  void Stop() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
    listening_.fds.clear();
  }

  void Proven(const std::string& peer, const std::string& who) {
    std::lock_guard lock(mutex_);
    gate_.Proven(peer, who);
    const auto found = sockets_.find(peer);
    if (found != sockets_.end()) found->second.proven = true;
  }

  std::string From(const std::string& who) {
    std::lock_guard lock(mutex_);
    return gate_.From(who);
  }

 private:
  // A socket by which gRPC's closing it can be noticed.
  struct Socket {
    int fd;
    ino_t inode;
    SteadyTime since;
    bool proven = false;
  };

  struct Waiting {
    UniqueFd fd;
    PeerText peer;
  };

  void Run() {
    const Clock& clock = *guard_.clock;
    RateLimit pace(kConnectionsPerSecond, kConnectionsPerSecond,
                   clock.Steady());
    SteadyTime next_tick = clock.Steady() + kTick;
    int ticks = 0;
    bool accepting = true;  // or not before the next tick
    while (true) {
      std::vector<pollfd> wait = {{stop_.get(), POLLIN, 0}};
      for (const UniqueFd& fd : listening_.fds) {
        const bool room = accepting && waiting_.size() < kMostWaiting;
        wait.push_back({room ? fd.get() : -1, POLLIN, 0});
      }
      absl::Duration left = next_tick - clock.Steady();
      if (!waiting_.empty()) {
        left = std::min(left, pace.WaitFor(1, clock.Steady()));
      }
      poll(wait.data(), wait.size(),
           static_cast<int>(
               std::max<int64_t>(0, absl::ToInt64Milliseconds(left) + 1)));
      if (wait[0].revents != 0) return;
      for (size_t i = 1; i < wait.size() && accepting; ++i) {
        if (wait[i].revents != 0) accepting = Accept(wait[i].fd);
      }
      while (!waiting_.empty() && pace.Take(1, clock.Steady())) LetIn();
      if (clock.Steady() < next_tick) continue;
      next_tick = clock.Steady() + kTick;
      accepting = true;
      Tick();
      if (++ticks % kTicksPerRefresh == 0) each_refresh_();
    }
  }

  // False: not before the next tick.
  bool Accept(int listener) {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    UniqueFd fd(accept4(listener, reinterpret_cast<sockaddr*>(&address), &size,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      // Out of descriptors: some may be free again soon.
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
             errno != ENOMEM;
    }
    waiting_.push_back({std::move(fd), DescribePeer(address)});
    return true;
  }

  // Hands the one that waits longest to gRPC.
  void LetIn() {
    const SteadyTime now = guard_.clock->Steady();
    UniqueFd fd = std::move(waiting_.front().fd);
    const PeerText peer = std::move(waiting_.front().peer);
    waiting_.pop_front();
    char byte;
    if (recv(fd.get(), &byte, 1, MSG_PEEK) == 0) return;  // it hung up
    struct stat file = {};
    fstat(fd.get(), &file);
    {
      std::lock_guard lock(mutex_);
      const ConnectionGate::Verdict verdict =
          gate_.Arrived(peer.peer, peer.address, peer.loopback, now);
      if (verdict != ConnectionGate::Verdict::kTake) {
        return Refused(peer.address, verdict);
      }
      sockets_[peer.peer] = {fd.get(), file.st_ino, now};
    }
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Acceptor::NewConnectionParameters connection;
    connection.listener_fd = -1;
    connection.fd = fd.Release();  // gRPC's from here on
    acceptor_->HandleNewConnection(&connection);
  }

  void Refused(const std::string& address, ConnectionGate::Verdict verdict) {
    const char* why = "";
    switch (verdict) {
      case ConnectionGate::Verdict::kTake:
        return;
      case ConnectionGate::Verdict::kFull:
        why = "too many connections";
        break;
      case ConnectionGate::Verdict::kUnproven:
        why = "too many connections without a call that is allowed";
        break;
      case ConnectionGate::Verdict::kBackOff:
        why = "too many failed connections from there within a minute";
        break;
    }
    guard_.audit->Refused("unknown", address, "connection", why);
  }

  // `address`: of a connection that failed; "": it did not. Whoever has no
  // certificate, or speaks no TLS, gets no further than this.
  void Ended(const std::string& address) {
    if (address.empty() || guard_.tls == nullptr) return;
    guard_.audit->Refused("unknown", address, "connection",
                          "ended without a call that is allowed");
  }

  // gRPC then closes it. By a number of our own: gRPC may close its own, and
  // somebody open another file under that, at any moment.
  static void Cut(const Socket& socket) {
    const UniqueFd own(fcntl(socket.fd, F_DUPFD_CLOEXEC, 0));
    struct stat file = {};
    if (own.valid() && fstat(own.get(), &file) == 0 && S_ISSOCK(file.st_mode) &&
        file.st_ino == socket.inode) {
      shutdown(own.get(), SHUT_RDWR);
    }
  }

  void Tick() {
    const SteadyTime now = guard_.clock->Steady();
    std::lock_guard lock(mutex_);
    for (auto it = sockets_.begin(); it != sockets_.end();) {
      struct stat file = {};
      // Another file under the number: gRPC closed the socket.
      const bool there = fstat(it->second.fd, &file) == 0 &&
                         S_ISSOCK(file.st_mode) &&
                         file.st_ino == it->second.inode;
      if (!there) Ended(gate_.Ended(it->first, now));
      if (there && !it->second.proven && now - it->second.since >= kUnproven) {
        Cut(it->second);
      }
      it = there ? std::next(it) : sockets_.erase(it);
    }
    gate_.Tick(now);
  }

  Listening listening_;
  const ServerGuard guard_;
  const UniqueFd stop_;
  std::unique_ptr<Acceptor> acceptor_;
  std::function<void()> each_refresh_;
  std::mutex mutex_;
  ConnectionGate gate_;
  std::map<std::string, Socket> sockets_;  // by peer
  std::deque<Waiting> waiting_;            // Run's own; oldest first
  std::thread thread_;
};

struct GuardedServer::Parts {
  std::unique_ptr<AccessControl> access;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<grpc::Server> server;  // ends first
};

GuardedServer::GuardedServer(std::string address, std::unique_ptr<Parts> parts)
    : address_(std::move(address)), parts_(std::move(parts)) {}

GuardedServer::~GuardedServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<GuardedServer>> GuardedServer::Start(
    const std::string& address, grpc::ServerBuilder* builder,
    const ServerGuard& guard) {
  RETURN_IF_ERROR(
      CheckExposure(address, guard.tls != nullptr, guard.insecure_plaintext));
  ASSIGN_OR_RETURN(Listening listening, ListenOn(address));
  const std::string host = SplitHostPort(address)->first;
  const std::string bound = absl::StrCat(host, ":", listening.port);
  auto parts = std::make_unique<Parts>();
  parts->listener = std::make_unique<Listener>(std::move(listening), guard);
  Listener* listener = parts->listener.get();
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                   MakeServerCredentials(
                       guard.tls,
                       guard.newcomers ? ClientCertificate::kNotAsked
                                       : ClientCertificate::kRequired,
                       [audit = guard.audit, listener](const std::string& who,
                                                       const std::string& why) {
                         audit->Refused(who, listener->From(""), "handshake",
                                        why);
                       }));
  parts->access = std::make_unique<AccessControl>(AccessControl::Options{
      .tls = guard.tls,
      .newcomers = guard.newcomers,
      .audit = guard.audit,
      .clock = guard.clock,
      .on_allowed =
          [listener](const std::string& peer, const std::string& who) {
            listener->Proven(peer, who);
          },
      .from =
          [listener](const std::string& who) { return listener->From(who); }});
  AccessControl* access = parts->access.get();
  if (guard.tls != nullptr) {
    credentials->SetAuthMetadataProcessor(access->Processor());
  }
  Harden(builder);
  std::vector<
      std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
      interceptors;
  interceptors.push_back(access->Interceptor());
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
  auto acceptor = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      credentials);
  parts->server = builder->BuildAndStart();
  if (parts->server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve on ", address, ": gRPC does not start"));
  }
  listener->Start(std::move(acceptor), [access, guard] {
    if (guard.tls != nullptr) {
      if (absl::Status status = guard.tls->Reload(); !status.ok()) {
        LOG(kWarning) << "kept the certificate in use: " << status.message();
      }
    }
    access->EndStale();
    guard.audit->Tick();
  });
  return std::unique_ptr<GuardedServer>(
      new GuardedServer(bound, std::move(parts)));
}

void GuardedServer::Stop(absl::Duration grace) {
  if (parts_->server == nullptr) return;
  parts_->listener->Stop();
  parts_->server->Shutdown(absl::ToChronoTime(RealClock().Wall() + grace));
  parts_->server.reset();
}

}  // namespace regatta

#include "tracker/tracker_service.h"

#include <grpcpp/grpcpp.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status_macros.h"
#include "tracker/core_loop.h"
#include "tracker/dispatch_service.h"
#include "tracker/fleet_service.h"

namespace regatta {
namespace {

// Heartbeats are the first line; pings only notice a peer that cannot answer.
// An agent pings every 30 s, which the floor of 10 s allows.
void SetChannelArguments(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder->AddChannelArgument("grpc.http2.ping_timeout_ms", 20'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 2);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->SetMaxReceiveMessageSize(8 << 20);
  builder->SetMaxSendMessageSize(-1);
}

}  // namespace

struct TrackerService::Parts {
  std::string address;
  std::unique_ptr<CoreLoop> loop;
  std::unique_ptr<FleetServiceImpl> fleet;
  std::unique_ptr<DispatchServiceImpl> dispatch;
  std::unique_ptr<grpc::Server> server;  // ends first

  void Deliver(Action action) {
    std::visit(
        [this](auto& a) {
          using T = std::decay_t<decltype(a)>;
          if constexpr (std::is_same_v<T, SendToAgent>) {
            fleet->Send(a.session, std::move(a.message));
          } else if constexpr (std::is_same_v<T, CloseSession>) {
            fleet->Close(a.session, a.status);
          } else if constexpr (std::is_same_v<T, SendToServer>) {
            dispatch->Send(a.stream, std::move(a.event));
          } else {
            dispatch->Close(a.stream, a.status);
          }
        },
        action);
  }
};

TrackerService::TrackerService(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}

TrackerService::~TrackerService() {
  Stop(absl::ZeroDuration());
  parts_->server.reset();
  // The loop's last inputs may still reach the services.
  parts_->loop.reset();
}

absl::StatusOr<std::unique_ptr<TrackerService>> TrackerService::Start(
    const std::string& address, const TrackerOptions& options,
    const Clock& clock, Random& random, FleetStore& store) {
  RETURN_IF_ERROR(Validate(options));
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  auto parts = std::make_unique<Parts>();
  Parts* raw = parts.get();
  // No action exists before a stream does, and no stream before the services.
  parts->loop = std::make_unique<CoreLoop>(
      options, clock, random, store,
      [raw](Action action) { raw->Deliver(std::move(action)); });
  parts->fleet = std::make_unique<FleetServiceImpl>(*parts->loop);
  parts->dispatch = std::make_unique<DispatchServiceImpl>(*parts->loop);
  grpc::ServerBuilder builder;
  int port = 0;
  SetChannelArguments(&builder);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(parts->fleet.get());
  builder.RegisterService(parts->dispatch.get());
  grpc::ResourceQuota quota("tracker");
  quota.Resize(size_t{4} << 30);
  builder.SetResourceQuota(quota);
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr || port == 0) {
    parts->loop.reset();
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", WhyNotListening(host_port.first, host_port.second)));
  }
  parts->address = absl::StrCat(host_port.first, ":", port);
  return std::unique_ptr<TrackerService>(new TrackerService(std::move(parts)));
}

const std::string& TrackerService::address() const { return parts_->address; }

void TrackerService::Stop(absl::Duration grace) {
  if (parts_->server == nullptr) return;
  if (grace > absl::ZeroDuration()) {
    parts_->loop->Post(
        [](TrackerCore& core) { core.Goodbye(absl::Seconds(1)); });
  }
  parts_->server->Shutdown(std::chrono::system_clock::now() +
                           absl::ToChronoMilliseconds(grace));
}

}  // namespace regatta

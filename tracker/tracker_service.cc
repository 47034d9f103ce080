#include "tracker/tracker_service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "proto/keepalive.h"
#include "proto/security/audit_service.h"
#include "proto/security/credential_keeper.h"
#include "proto/security/guarded_server.h"
#include "tracker/certificate_service.h"
#include "tracker/config/http_post.h"
#include "tracker/core_loop.h"
#include "tracker/dispatch_service.h"
#include "tracker/fleet_service.h"
#include "tracker/power_runner.h"
#include "tracker/webhook.h"

namespace regatta {
namespace {

// What a stream may send ahead: a busy machine lets a peer's window grow again
// only every few dozen milliseconds, and a server sends megabytes a second.
constexpr int kWindowBytes = 256 << 10;

void SetChannelArguments(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kTrackerPingMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              kTrackerPingLimitMs);
  builder->AddChannelArgument("grpc.http2.ping_timeout_ms",
                              kTrackerPingLimitMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kLeastPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kPingStrikes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                              kWindowBytes);
  builder->SetMaxReceiveMessageSize(8 << 20);
  builder->SetMaxSendMessageSize(-1);
}

constexpr int kMaxJoinBytes = 64 << 10;
constexpr absl::Duration kWebhookLimit = absl::Seconds(10);
constexpr std::chrono::seconds kCollectLimit(5);

absl::Status CheckHttp(const FleetConfig& fleet) {
  bool wanted = !fleet.webhook.empty();
  for (const auto& [id, board] : fleet.boards) {
    if (!board.power) continue;
    for (const PowerCommand* command :
         {&board.power->off, &board.power->on, &board.power->cycle}) {
      wanted |= !command->url.empty();
    }
  }
  if (!wanted || HttpAvailable()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the fleet's file names URLs, but this program was built without "
      "cpp-httplib; install libcpp-httplib-dev and build again");
}

}  // namespace

struct TrackerService::Parts {
  std::unique_ptr<AuditLog> no_audit;
  AuditLog* audit = nullptr;
  std::unique_ptr<Webhook> webhook;  // none: nobody wants to know
  std::unique_ptr<CoreLoop> loop;
  std::unique_ptr<PowerRunner> power;
  std::unique_ptr<FleetServiceImpl> fleet;
  std::unique_ptr<DispatchServiceImpl> dispatch;
  std::unique_ptr<AuthorityDesk> desk;
  std::unique_ptr<CertificateServiceImpl> certificates;
  std::unique_ptr<EnrolmentServiceImpl> enrolment;
  std::unique_ptr<AuditServiceImpl> audit_service;
  std::unique_ptr<CredentialKeeper> keeper;
  std::unique_ptr<GuardedServer> enrolment_server;
  std::unique_ptr<GuardedServer> server;
  bool stopped = false;
  std::optional<std::map<std::string, std::string>> told_revoked;

  // The servers end first; the loop's last inputs may still reach the services.
  ~Parts() {
    server.reset();
    enrolment_server.reset();
    keeper.reset();
    if (power != nullptr) power->Stop();
    loop.reset();
  }

  // Whom the fleet's operator wants told, and what switches power.
  absl::Status ReachOut(const FleetConfig& fleet) {
    RETURN_IF_ERROR(CheckHttp(fleet));
    if (!fleet.webhook.empty()) {
      webhook = std::make_unique<Webhook>(
          [url = fleet.webhook](const std::string& body) {
            return HttpPost(url, body, "application/json", kWebhookLimit);
          });
    }
    power = std::make_unique<PowerRunner>(
        [this](const std::string& device_id, const absl::Status& status) {
          loop->Post([device_id, status](TrackerCore& core) {
            core.PowerDone(device_id, status);
          });
        });
    return absl::OkStatus();
  }

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
          } else if constexpr (std::is_same_v<T, SwitchPower>) {
            power->Run(a.device_id, a.command);
          } else if constexpr (std::is_same_v<T, regatta::Announce>) {
            if (webhook != nullptr) webhook->Notify(a.event);
          } else if constexpr (std::is_same_v<T, CloseServer>) {
            dispatch->Close(a.stream, a.status);
          } else {
            audit->Refused(a.who, fleet->From(a.session), a.what, a.why);
          }
        },
        action);
  }

  // Whose boards stay away because of it is shown. On the keeper's thread.
  void TellRevoked() {
    auto revoked = desk->RevokedAgents();
    if (!revoked.ok() || told_revoked == *revoked) return;
    told_revoked = *revoked;
    loop->Post([agents = *std::move(revoked)](TrackerCore& core) {
      core.CertificatesRevoked(agents);
    });
  }

  // A tracker renews its own certificate with the authority that it has.
  void KeepCredentials(const TrackerSecurity& security, const Clock& clock) {
    CredentialKeeper::Options options;
    if (security.authority != nullptr) {
      options.renew = [this, tls = security.tls](const std::string& request) {
        return desk->RenewNow(tls->material()->certificate, request);
      };
      options.revocations = [this] {
        TellRevoked();
        return desk->Revocations();
      };
      options.revocations_every = options.poll;
    }
    keeper = std::make_unique<CredentialKeeper>(security.tls,
                                                std::move(options), clock);
  }
};

TrackerService::TrackerService(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}

TrackerService::~TrackerService() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<TrackerService>> TrackerService::Start(
    const std::string& address, const TrackerOptions& options,
    const Clock& clock, Random& random, FleetStore& store,
    const TrackerSecurity& security) {
  RETURN_IF_ERROR(Validate(options));
  auto parts = std::make_unique<Parts>();
  Parts* raw = parts.get();
  parts->audit = security.audit;
  if (parts->audit == nullptr) {
    parts->no_audit = AuditLog::Nowhere(clock);
    parts->audit = parts->no_audit.get();
  }
  RETURN_IF_ERROR(parts->ReachOut(options.fleet));
  // No action exists before a stream does, and no stream before the services.
  parts->loop = std::make_unique<CoreLoop>(
      options, clock, random, store,
      [raw](Action action) { raw->Deliver(std::move(action)); });
  parts->fleet =
      std::make_unique<FleetServiceImpl>(*parts->loop, options, clock);
  parts->dispatch = std::make_unique<DispatchServiceImpl>(*parts->loop);
  parts->desk =
      std::make_unique<AuthorityDesk>(security.authority, security.tls, clock);
  parts->certificates =
      std::make_unique<CertificateServiceImpl>(parts->desk.get());
  parts->enrolment =
      std::make_unique<EnrolmentServiceImpl>(parts->desk.get(), parts->audit);
  parts->audit_service = std::make_unique<AuditServiceImpl>(parts->audit);

  ServerGuard guard{.tls = security.tls,
                    .insecure_plaintext = security.insecure_plaintext,
                    .audit = parts->audit,
                    .clock = &clock,
                    .gate = security.gate};
  grpc::ServerBuilder builder;
  SetChannelArguments(&builder);
  builder.RegisterService(parts->fleet.get());
  builder.RegisterService(parts->dispatch.get());
  builder.RegisterService(parts->certificates.get());
  builder.RegisterService(parts->audit_service.get());
  grpc::ResourceQuota quota("tracker");
  quota.Resize(size_t{4} << 30);
  builder.SetResourceQuota(quota);
  ASSIGN_OR_RETURN(parts->server,
                   GuardedServer::Start(address, &builder, guard));
  if (!security.enrol.empty()) {
    guard.newcomers = true;
    grpc::ServerBuilder enrolment;
    enrolment.SetMaxReceiveMessageSize(kMaxJoinBytes);
    enrolment.RegisterService(parts->enrolment.get());
    ASSIGN_OR_RETURN(parts->enrolment_server,
                     GuardedServer::Start(security.enrol, &enrolment, guard));
  }
  if (security.tls != nullptr) parts->KeepCredentials(security, clock);
  return std::unique_ptr<TrackerService>(new TrackerService(std::move(parts)));
}

const std::string& TrackerService::address() const {
  return parts_->server->address();
}

std::string TrackerService::enrol_address() const {
  return parts_->enrolment_server == nullptr
             ? ""
             : parts_->enrolment_server->address();
}

void TrackerService::Collect(MetricsPage& page) const {
  // The loop may come to it after nobody waits any more.
  auto collected = std::make_shared<std::promise<MetricsPage>>();
  std::future<MetricsPage> future = collected->get_future();
  parts_->loop->Post([collected](TrackerCore& core) {
    MetricsPage own;
    core.Collect(own);
    collected->set_value(std::move(own));
  });
  if (future.wait_for(kCollectLimit) == std::future_status::ready) {
    page.Append(future.get());
  }
  const Webhook* const webhook = parts_->webhook.get();
  page.Counter(
      "regatta_tracker_webhook_dropped_total",
      "Events that the webhook was not told",
      webhook == nullptr ? 0 : static_cast<double>(webhook->dropped()));
}

void TrackerService::Stop(absl::Duration grace) {
  if (parts_->stopped) return;
  parts_->stopped = true;
  if (grace > absl::ZeroDuration()) {
    parts_->loop->Post(
        [](TrackerCore& core) { core.Goodbye(absl::Seconds(1)); });
  }
  if (parts_->enrolment_server != nullptr) {
    parts_->enrolment_server->Stop(absl::ZeroDuration());
  }
  parts_->server->Stop(grace);
}

}  // namespace regatta

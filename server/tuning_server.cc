#include "server/tuning_server.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// A batch of imported entries, each of them up to 8 MiB.
constexpr int kMaxRequestBytes = 10 << 20;

}  // namespace

TuningServer::TuningServer(TuningServiceImpl* tuning, LogServiceImpl* log)
    : tuning_(tuning), log_(log) {}

TuningServer::~TuningServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<TuningServer>> TuningServer::Start(
    const std::string& address, TuningServiceImpl* tuning, LogServiceImpl* log,
    const ServerSecurity& security) {
  std::unique_ptr<TuningServer> server(new TuningServer(tuning, log));
  ServerGuard guard{.tls = security.tls,
                    .insecure_plaintext = security.insecure_plaintext,
                    .audit = security.audit,
                    .clock = &RealClock(),
                    .gate = security.gate};
  if (guard.audit == nullptr) {
    server->no_audit_ = AuditLog::Nowhere(RealClock());
    guard.audit = server->no_audit_.get();
  }
  server->audit_ =
      std::make_unique<AuditServiceImpl>(guard.audit, security.other_audit);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(tuning);
  builder.RegisterService(log);
  builder.RegisterService(server->audit_.get());
  ASSIGN_OR_RETURN(server->server_,
                   GuardedServer::Start(address, &builder, guard));
  return server;
}

void TuningServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  tuning_->Close();
  log_->Close();
  server_->Stop(grace);
  server_.reset();
}

}  // namespace regatta

#include "server/tuning_server.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// A batch of imported entries, each of them up to 8 MiB.
constexpr int kMaxRequestBytes = 10 << 20;

}  // namespace

TuningServer::TuningServer(std::string address, TuningServiceImpl* tuning,
                           LogServiceImpl* log,
                           std::unique_ptr<grpc::Server> server)
    : address_(std::move(address)),
      tuning_(tuning),
      log_(log),
      server_(std::move(server)) {}

TuningServer::~TuningServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<TuningServer>> TuningServer::Start(
    const std::string& address, TuningServiceImpl* tuning,
    LogServiceImpl* log) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(tuning);
  builder.RegisterService(log);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ",
                     WhyNotListening(host_port.first, host_port.second)));
  }
  return std::unique_ptr<TuningServer>(
      new TuningServer(absl::StrCat(host_port.first, ":", port), tuning, log,
                       std::move(server)));
}

void TuningServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  tuning_->Close();
  log_->Close();
  server_->Shutdown(gpr_time_add(
      gpr_now(GPR_CLOCK_REALTIME),
      gpr_time_from_millis(absl::ToInt64Milliseconds(grace), GPR_TIMESPAN)));
  server_.reset();
}

}  // namespace regatta

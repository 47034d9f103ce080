#include "server/tuning_server.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

constexpr int kMaxRequestBytes = 1 << 20;

struct HostPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostPort> Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", address, "' is no HOST:PORT, for example 127.0.0.1:7470"));
  }
  return HostPort{address.substr(0, colon), address.substr(colon + 1)};
}

// gRPC only logs why it could not listen; the system is asked again for the
// reason.
std::string WhyNot(HostPort address) {
  if (address.host.size() > 1 && address.host.front() == '[') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(),
                                    &hints, &found);
      error != 0) {
    return gai_strerror(error);
  }
  std::string reason = "the system refused it";
  const int fd = socket(found->ai_family, found->ai_socktype, 0);
  const int one = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd, 1) != 0) {
    reason = strerror(errno);
  }
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return reason;
}

}  // namespace

TuningServer::TuningServer(std::string address, TuningServiceImpl* service,
                           std::unique_ptr<grpc::Server> server)
    : address_(std::move(address)),
      service_(service),
      server_(std::move(server)) {}

TuningServer::~TuningServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<TuningServer>> TuningServer::Start(
    const std::string& address, TuningServiceImpl* service) {
  ASSIGN_OR_RETURN(const HostPort host_port, Split(address));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", WhyNot(host_port)));
  }
  return std::unique_ptr<TuningServer>(new TuningServer(
      absl::StrCat(host_port.host, ":", port), service, std::move(server)));
}

void TuningServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  service_->Close();
  server_->Shutdown(gpr_time_add(
      gpr_now(GPR_CLOCK_REALTIME),
      gpr_time_from_millis(absl::ToInt64Milliseconds(grace), GPR_TIMESPAN)));
  server_.reset();
}

}  // namespace regatta

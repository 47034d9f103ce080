#include "client/cli/channel_client.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/security/credentials_service.h"

namespace regatta::cli {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const ServerAddress& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  // A proxy of the environment has no business between us and our server.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(
      server.address, MakeChannelCredentials(server.tls, {Role::kServer}),
      arguments);
}

}  // namespace

ServerChannel::ServerChannel(ServerAddress address)
    : address_(std::move(address)), channel_(MakeChannel(address_)) {}

absl::Status ServerChannel::FromGrpc(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  // A server that is there says Unavailable, too, while it has no tracker.
  const bool connected =
      channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  if ((code == absl::StatusCode::kUnavailable && !connected) ||
      code == absl::StatusCode::kDeadlineExceeded) {
    return absl::Status(
        code, absl::StrCat("the server at ", address_.address, " (from ",
                           address_.source,
                           ") does not answer: ", status.error_message(),
                           ". Start one with `regatta up`, or name another "
                           "with --server HOST:PORT",
                           address_.tls == nullptr
                               ? "; one that wants certificates wants --tls DIR"
                               : "; one that refuses this certificate says why "
                                 "in its audit"));
  }
  if (code == absl::StatusCode::kCancelled) {
    // Another code: it was not the user who ended it.
    return absl::AbortedError(absl::StrCat(
        "the server at ", address_.address,
        " ended the call: it does when nothing of an answer is read for a "
        "minute. Run the command again, without a pause in what reads its "
        "output"));
  }
  return absl::Status(code, status.error_message());
}

void ServerChannel::SetDeadline(grpc::ClientContext& context,
                                std::chrono::seconds limit) {
  context.set_deadline(std::chrono::system_clock::now() + limit);
}

}  // namespace regatta::cli

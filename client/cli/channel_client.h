// The way to a server that its clients share: one channel, and errors that say
// which server was asked.
#ifndef REGATTA_CLIENT_CLI_CHANNEL_CLIENT_H_
#define REGATTA_CLIENT_CLI_CHANNEL_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/server_address.h"

namespace regatta::cli {

// Thread-safe.
class ServerChannel {
 public:
  explicit ServerChannel(ServerAddress address);

  const std::shared_ptr<grpc::Channel>& get() const { return channel_; }
  // A server that does not answer: Unavailable, with the address, where it came
  // from and what to do. One that ended a call that this program did not
  // cancel: Aborted. REQUIRES: for Cancelled, that it did not.
  absl::Status FromGrpc(const grpc::Status& status) const;

  // A unary call that gives up after `limit`.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request,
      std::chrono::seconds limit = std::chrono::seconds(10)) const {
    grpc::ClientContext context;
    SetDeadline(context, limit);
    Response response;
    absl::Status status =
        FromGrpc((stub.*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

 private:
  static void SetDeadline(grpc::ClientContext& context,
                          std::chrono::seconds limit);

  ServerAddress address_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_CHANNEL_CLIENT_H_

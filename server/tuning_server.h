// Listens for gRPC services on one address.
#ifndef REGATTA_SERVER_TUNING_SERVER_H_
#define REGATTA_SERVER_TUNING_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/log_service.h"
#include "server/tuning_service.h"

namespace grpc {
class Server;
}

namespace regatta {

class TuningServer {
 public:
  // The services are not owned and outlive it. `address` is HOST:PORT; port 0
  // picks a free one. InvalidArgument when it is not of that form; Unavailable
  // when it cannot be listened on, with the system's reason.
  static absl::StatusOr<std::unique_ptr<TuningServer>> Start(
      const std::string& address, TuningServiceImpl* tuning,
      LogServiceImpl* log);
  ~TuningServer();

  const std::string& address() const { return address_; }
  // Takes no new calls, gives those that run up to `grace` to end.
  void Stop(absl::Duration grace);

 private:
  TuningServer(std::string address, TuningServiceImpl* tuning,
               LogServiceImpl* log, std::unique_ptr<grpc::Server> server);
  std::string address_;
  TuningServiceImpl* tuning_;
  LogServiceImpl* log_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_TUNING_SERVER_H_

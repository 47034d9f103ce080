// Statuses as gRPC says them, for the services.
#ifndef REGATTA_PROTO_GRPC_STATUS_SERVICE_H_
#define REGATTA_PROTO_GRPC_STATUS_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"

namespace regatta {

inline grpc::Status ToGrpc(const absl::Status& status) {
  // The codes are the same numbers.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace regatta

#endif  // REGATTA_PROTO_GRPC_STATUS_SERVICE_H_

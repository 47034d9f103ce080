// AuditService over gRPC.
#ifndef REGATTA_PROTO_SECURITY_AUDIT_SERVICE_H_
#define REGATTA_PROTO_SECURITY_AUDIT_SERVICE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "proto/security/audit_log.h"
#include "regatta/v1/security_service.grpc.pb.h"

namespace regatta {

// Thread-safe, as gRPC wants it.
class AuditServiceImpl final : public v1::AuditService::CallbackService {
 public:
  // Of another daemon, put before this one's.
  using Others =
      std::function<absl::StatusOr<v1::ListAuditResponse>(int64_t limit)>;

  // `log` outlives it. `others` may be empty.
  explicit AuditServiceImpl(const AuditLog* log, Others others = nullptr)
      : log_(log), others_(std::move(others)) {}

  grpc::ServerUnaryReactor* ListAudit(grpc::CallbackServerContext* context,
                                      const v1::ListAuditRequest* request,
                                      v1::ListAuditResponse* response) override;

 private:
  const AuditLog* const log_;
  const Others others_;
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_AUDIT_SERVICE_H_

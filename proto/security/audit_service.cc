#include "proto/security/audit_service.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/grpc_status_service.h"

namespace regatta {
namespace {

constexpr int64_t kDefaultLimit = 1'000;
constexpr int64_t kMaxLimit = 10'000;

absl::Status List(const AuditLog& log, const AuditServiceImpl::Others& others,
                  int64_t limit, v1::ListAuditResponse* response) {
  if (limit < 0 || limit > kMaxLimit) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit is ", limit, ", must be 0 to ", kMaxLimit));
  }
  if (limit == 0) limit = kDefaultLimit;
  if (others) {
    auto before = others(limit);
    if (before.ok()) {
      *response = *std::move(before);
    } else {
      response->set_incomplete(std::string(before.status().message()));
    }
  }
  auto own = log.Newest(static_cast<size_t>(limit));
  if (!own.ok()) return own.status();
  for (v1::AuditEntry& entry : *own) {
    *response->add_entries() = std::move(entry);
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* AuditServiceImpl::ListAudit(
    grpc::CallbackServerContext* context, const v1::ListAuditRequest* request,
    v1::ListAuditResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(List(*log_, others_, request->limit(), response)));
  return reactor;
}

}  // namespace regatta

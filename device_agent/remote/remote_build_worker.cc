#include "device_agent/remote/remote_build_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/device_build.h"

namespace regatta {
namespace {

constexpr char kProcessors[] = "cpu";
// As fleet_service.proto says.
constexpr size_t kMaxRequestBytes = 256 << 10;

void SetTarget(const std::string& target, v1::BuildOrder& order) {
  order.set_kind(KindOfTarget(target));
  order.set_architecture(ArchitectureOfTarget(target));
}

bool AnswersTo(const v1::BuildRequest& request,
               const v1::BuildResponse& response) {
  if (response.has_failure()) return true;
  switch (request.request_case()) {
    case v1::BuildRequest::kDescribe:
      return response.has_description();
    case v1::BuildRequest::kModule:
      return response.has_module();
    case v1::BuildRequest::kReference:
      return response.has_reference();
    case v1::BuildRequest::kReach:
      return response.has_reach();
    case v1::BuildRequest::REQUEST_NOT_SET:
      break;
  }
  return false;
}

}  // namespace

v1::BuildOrder OrderOf(const v1::BuildRequest& request) {
  v1::BuildOrder order;
  order.set_kind(kProcessors);
  if (request.has_module()) {
    SetTarget(request.module().target(), order);
    order.set_compiler_version(request.module().compiler_version());
    order.set_space_version(request.module().schedule().space_version());
  } else if (request.has_reference()) {
    SetTarget(request.reference().target(), order);
  } else if (request.describe().has_device()) {
    order.set_kind(request.describe().device().kind());
  } else if (!request.describe().target().empty()) {
    SetTarget(request.describe().target(), order);
  } else {
    order.set_architecture(request.describe().processor().architecture());
  }
  order.set_request(request.SerializeAsString());
  return order;
}

absl::StatusOr<BuildWorker::Reply> RemoteBuildWorker::Call(
    v1::BuildRequest request, const std::function<bool()>& cancelled) {
  request.clear_request_id();
  if (const size_t bytes = request.ByteSizeLong(); bytes > kMaxRequestBytes) {
    Reply refused;
    v1::BuildFailure& failure = *refused.response.mutable_failure();
    failure.set_outcome(v1::OUTCOME_REFUSED);
    failure.set_detail(absl::StrCat("workload and schedule have ", bytes,
                                    " bytes; builders take at most ",
                                    kMaxRequestBytes));
    return refused;
  }
  ASSIGN_OR_RETURN(OrderDesk::Delivery delivery,
                   desk_->Order(OrderOf(request), [&] {
                     return aborted_ || (cancelled && cancelled());
                   }));
  const bool has_file =
      delivery.response.has_module() || delivery.response.has_reference();
  if (!AnswersTo(request, delivery.response) ||
      has_file != delivery.file.valid()) {
    return absl::InternalError(absl::StrCat(
        "builder ", delivery.builder, " answered something else than asked"));
  }
  Reply reply;
  reply.response = std::move(delivery.response);
  reply.file = std::move(delivery.file);
  reply.builder = std::move(delivery.builder);
  return reply;
}

}  // namespace regatta

#include "device_agent/measure/build_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {

absl::StatusOr<v1::Description> Describe(
    BuildWorker& worker, const v1::DescribeRequest& device,
    const std::function<bool()>& cancelled) {
  v1::BuildRequest request;
  *request.mutable_describe() = device;
  ASSIGN_OR_RETURN(const BuildWorker::Reply reply,
                   worker.Call(std::move(request), cancelled));
  if (reply.response.has_description()) return reply.response.description();
  return absl::UnavailableError(
      absl::StrCat("build worker: ", reply.response.failure().detail()));
}

}  // namespace regatta

#include "device_agent/build/processor_target.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/compile.h"

namespace regatta {

absl::StatusOr<Target> ProcessorTarget(const v1::DescribeRequest& request) {
  if (request.target().empty()) {
    if (!request.has_processor()) return HostTarget();
    return TargetOfProcessor(request.processor().architecture(),
                             request.processor().cpuinfo());
  }
  ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  if (target.triple.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: ", request.target(),
                     " names no processors: it has no triple"));
  }
  return CompleteTarget(target);
}

}  // namespace regatta

#include "device_agent/run/opencl_errors.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "device_agent/run/opencl_api.h"

namespace regatta::opencl {
namespace {

struct Rule {
  Step step;
  int32_t error;
  v1::Outcome outcome;
};
// Whatever is not here is the board's.
constexpr Rule kRules[] = {
    {Step::kCode, kBuildProgramFailure, v1::OUTCOME_COMPILE_ERROR},
    {Step::kCode, kInvalidKernelName, v1::OUTCOME_COMPILE_ERROR},
    {Step::kCode, kInvalidArgIndex, v1::OUTCOME_COMPILE_ERROR},
    {Step::kCode, kInvalidKernelArgs, v1::OUTCOME_COMPILE_ERROR},
    {Step::kCode, kOutOfResources, v1::OUTCOME_REFUSED},
    {Step::kCode, kMemObjectAllocationFailure, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kCode, kOutOfHostMemory, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kBuffers, kMemObjectAllocationFailure, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kBuffers, kOutOfHostMemory, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kBuffers, kOutOfResources, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kBuffers, kInvalidBufferSize, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kBuffers, kImageFormatNotSupported, v1::OUTCOME_REFUSED},
    {Step::kBuffers, kInvalidImageSize, v1::OUTCOME_REFUSED},
    {Step::kLaunch, kInvalidKernelArgs, v1::OUTCOME_COMPILE_ERROR},
    {Step::kLaunch, kOutOfResources, v1::OUTCOME_REFUSED},
    {Step::kLaunch, kInvalidWorkGroupSize, v1::OUTCOME_REFUSED},
    {Step::kLaunch, kInvalidWorkItemSize, v1::OUTCOME_REFUSED},
    {Step::kLaunch, kInvalidGlobalWorkSize, v1::OUTCOME_REFUSED},
    {Step::kLaunch, kMemObjectAllocationFailure, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kLaunch, kOutOfHostMemory, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kRun, kOutOfResources, v1::OUTCOME_CRASHED},
    {Step::kRun, kExecStatusErrorForEventsInWaitList, v1::OUTCOME_CRASHED},
    {Step::kRun, kInvalidCommandQueue, v1::OUTCOME_CRASHED},
    {Step::kRun, kIllegalAccessNv, v1::OUTCOME_CRASHED},
    {Step::kRun, kMemObjectAllocationFailure, v1::OUTCOME_OUT_OF_MEMORY},
    {Step::kRun, kOutOfHostMemory, v1::OUTCOME_OUT_OF_MEMORY},
};

}  // namespace

v1::Outcome OutcomeOf(int32_t error, Step step) {
  const auto* const rule = std::find_if(
      std::begin(kRules), std::end(kRules),
      [&](const Rule& r) { return r.step == step && r.error == error; });
  return rule == std::end(kRules) ? v1::OUTCOME_DEVICE_FAULT : rule->outcome;
}

MaybeFailure FailureOf(int32_t error, Step step, std::string_view what) {
  if (error == kSuccess) return std::nullopt;
  return Failed(OutcomeOf(error, step),
                absl::StrCat(std::string(what), ": ", ErrorName(error)));
}

}  // namespace regatta::opencl

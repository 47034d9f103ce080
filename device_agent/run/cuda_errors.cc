#include "device_agent/run/cuda_errors.h"

#include "absl/strings/str_cat.h"

namespace regatta::cuda {

v1::Outcome OutcomeOf(Result error, Asked asked) {
  switch (error) {
    case kOutOfMemory:
      return v1::OUTCOME_OUT_OF_MEMORY;
    case kInvalidValue:
      return asked == Asked::kLaunch ? v1::OUTCOME_REFUSED
                                     : v1::OUTCOME_DEVICE_FAULT;
    case kLaunchOutOfResources:
      return v1::OUTCOME_REFUSED;
    case kInvalidImage:
    case kInvalidPtx:
    case kNotFound:
      return v1::OUTCOME_COMPILE_ERROR;
    case kLaunchTimeout:  // where the GPU drives a display
      return v1::OUTCOME_TIMED_OUT;
    case kIllegalAddress:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return v1::OUTCOME_CRASHED;
    default:
      return v1::OUTCOME_DEVICE_FAULT;
  }
}

MaybeFailure FailureOf(const Api& api, Result error, std::string_view what,
                       Asked asked) {
  if (error == kSuccess) return std::nullopt;
  return Failed(OutcomeOf(error, asked),
                absl::StrCat(std::string(what), ": ", api.ErrorText(error)));
}

}  // namespace regatta::cuda

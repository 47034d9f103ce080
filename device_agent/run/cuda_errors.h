// Whose an error of the CUDA driver is. Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_ERRORS_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_ERRORS_H_

#include <string_view>

#include "device_agent/run/cuda_api.h"
#include "device_agent/run/module_runtime.h"

namespace regatta::cuda {

// What was asked of the driver. An error that a running kernel made is told by
// whichever function is called next, so only one code depends on it:
// kInvalidValue says of a launch, and of leave for its memory, that the kernel
// wants more than there is; of anything else that it was called wrongly.
enum class Asked { kAnything, kLaunch };
v1::Outcome OutcomeOf(Result error, Asked asked = Asked::kAnything);

// Absent for kSuccess; else "WHAT: the driver's words".
MaybeFailure FailureOf(const Api& api, Result error, std::string_view what,
                       Asked asked = Asked::kAnything);

}  // namespace regatta::cuda

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_ERRORS_H_

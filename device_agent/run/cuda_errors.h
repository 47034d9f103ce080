// Whose an error of the CUDA driver is. Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_ERRORS_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_ERRORS_H_

#include <string_view>

#include "device_agent/run/cuda_api.h"
#include "device_agent/run/module_runtime.h"

namespace regatta::cuda {

// The same for every function of the driver: an error that a running kernel
// made is told by whichever function is called next.
v1::Outcome OutcomeOf(Result error);

// Absent for kSuccess; else "WHAT: the driver's words".
MaybeFailure FailureOf(const Api& api, Result error, std::string_view what);

}  // namespace regatta::cuda

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_ERRORS_H_

// Whose an error of an OpenCL driver is. Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_ERRORS_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_ERRORS_H_

#include <cstdint>
#include <string_view>

#include "device_agent/run/module_runtime.h"

namespace regatta::opencl {

// What was done when the driver told of the error: the same code is somebody
// else's at another step.
enum class Step {
  kDevice,   // nothing of the candidate: making a context, reading times or
             // results, launching what was launched before
  kCode,     // compiling; making kernels and giving them arguments
  kBuffers,  // making and filling them: drivers allocate when they are filled
  kLaunch,   // launching a kernel for the first time, while none is running
  kRun,      // waiting for kernels: their own faults are told as errors of
             // resources, of the events that waited, of the queue
};
v1::Outcome OutcomeOf(int32_t error, Step step);

// Absent for kSuccess; else "WHAT: CL_OUT_OF_RESOURCES (-5)".
MaybeFailure FailureOf(int32_t error, Step step, std::string_view what);

}  // namespace regatta::opencl

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_ERRORS_H_

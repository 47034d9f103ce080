// Runs modules of target kind "opencl": `loadable` is OpenCL C source,
// kernels[i].entry a __kernel in it whose arguments are the buffers of
// kernels[i].arguments, `grid` its groups and `group` its work-items per
// dimension, host_sequence the order of launches.
//
// Every buffer is an allocation of its own, cut from a larger one, so that
// bytes before and after it show what a kernel wrote outside; inputs are
// compared with what was given. One in-order queue with profiling. A call's
// time is from the start of its first kernel to the end of its last, by the
// device's clock; where that is too short for the clock's resolution, the time
// of all calls together is taken, gaps included.
//
// Which error is whose:
//   the program does not compile             compile_error with the build log
//   launches beyond what the device has      refused
//   no memory                                out_of_memory
//   a kernel that was begun fails            crashed
//   the device is gone; times that cannot
//   be right; any other error                device_fault
// A kernel's own fault is told by whatever is asked of the driver next: a
// launch that fails waits for what was begun before it, which says whose it is
// (opencl_errors.h).
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_RUNTIME_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_RUNTIME_H_

#include "compiler/module/module.h"
#include "device_agent/run/module_runtime.h"

namespace regatta {

// REQUIRES: `module` outlives the runtime.
RuntimeOrFailure CreateOpenClRuntime(const Module& module,
                                     const RuntimeOptions& options);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_RUNTIME_H_

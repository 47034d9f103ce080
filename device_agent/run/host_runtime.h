// Runs modules of target kind "cpu": loads the shared object into this process
// and calls its NAME_call. Tensors and workspace are host memory between guard
// pages, so that a kernel that leaves its buffers ends the process, and the
// crash report says where.
#ifndef REGATTA_DEVICE_AGENT_RUN_HOST_RUNTIME_H_
#define REGATTA_DEVICE_AGENT_RUN_HOST_RUNTIME_H_

#include "compiler/module/module.h"
#include "device_agent/run/module_runtime.h"

namespace regatta {

// The module is never unloaded: threads of it may outlive every call.
RuntimeOrFailure CreateHostRuntime(const Module& module,
                                   const RuntimeOptions& options);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_HOST_RUNTIME_H_

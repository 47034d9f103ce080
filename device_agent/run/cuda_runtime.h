// Runs modules of target kind "cuda": `loadable` is a CudaBinary
// (compiler/module/cuda_binary.h), kernels[i].entry a kernel in it whose
// parameters are the addresses of the buffers of kernels[i].arguments, `grid`
// its blocks and `group` the threads of a block per dimension, `shared_bytes`
// its dynamic shared memory, host_sequence the order of launches.
//
// The cubin is loaded where it fits the device's architecture; elsewhere, and
// where the driver does not take it, the driver compiles the PTX. Buffers:
// cuda_memory.h; inputs are compared with what was given. Times are between
// two events around all calls, so they hold the gaps between launches.
//
// Which error is whose:
//   code that the driver does not compile, a kernel missing   compile_error
//   launches beyond what the device or the kernel takes       refused
//   no memory                                                 out_of_memory
//   a kernel's own fault, while it runs                       crashed
//   any other error; PTX newer than the driver; times that
//   cannot be right                                           device_fault
// After the fourth this process's context is dead: so is the run worker.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_RUNTIME_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_RUNTIME_H_

#include "compiler/module/module.h"
#include "device_agent/run/module_runtime.h"

namespace regatta {

// REQUIRES: `module` outlives the runtime.
RuntimeOrFailure CreateCudaRuntime(const Module& module,
                                   const RuntimeOptions& options);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_RUNTIME_H_

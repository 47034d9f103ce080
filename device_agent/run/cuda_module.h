// Code on a CUDA device: a CudaBinary loaded, its kernels looked up and their
// needs compared with what the device has.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_MODULE_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_MODULE_H_

#include <string>
#include <vector>

#include "compiler/module/cuda_binary.h"
#include "compiler/module/module.h"
#include "device_agent/run/cuda_device.h"
#include "device_agent/run/launch_shape.h"
#include "device_agent/run/module_runtime.h"

namespace regatta::cuda {

// Whether code for `arch` ("sm_80", "sm_90a") runs as it is on a device of
// architecture 86: the same generation, no newer; with a letter exactly that
// one.
bool RunsOn(const std::string& arch, int architecture);

class LoadedModule {
 public:
  // REQUIRES: `gpu` outlives it.
  explicit LoadedModule(const Gpu& gpu) : gpu_(gpu) {}
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  // Once, before anything else.
  MaybeFailure Load(const CudaBinary& binary);

  struct Kernel {
    Function function = nullptr;
    std::string entry;
    LaunchShape shape;
  };
  // `kernel` ready to be launched: found, within the limits, and with leave
  // for the shared memory that it gets at launch.
  MaybeFailure Find(const ModuleKernel& kernel, Kernel* found) const;

 private:
  MaybeFailure LoadPtx(const std::string& ptx);
  MaybeFailure CheckLimits(const Kernel& kernel) const;

  const Gpu& gpu_;
  CodeModule module_ = nullptr;
};

}  // namespace regatta::cuda

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_MODULE_H_

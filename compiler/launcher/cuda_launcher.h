// Launchers of CUDA kernels: over the driver's interface, libcuda.so.1.
#ifndef REGATTA_COMPILER_LAUNCHER_CUDA_LAUNCHER_H_
#define REGATTA_COMPILER_LAUNCHER_CUDA_LAUNCHER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/launcher/launcher.h"

namespace regatta {

// NAME.h, NAME.c, NAME.cu, NAME.cubin, NAME.ptx. InvalidArgument when
// `request.loadable` is no CUDA binary.
absl::StatusOr<std::vector<LauncherFile>> WriteCudaLauncher(
    const LauncherRequest& request);

}  // namespace regatta

#endif  // REGATTA_COMPILER_LAUNCHER_CUDA_LAUNCHER_H_

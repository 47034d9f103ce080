// Launchers of OpenCL kernels: over the ICD loader, libOpenCL.so.1.
#ifndef REGATTA_COMPILER_LAUNCHER_OPENCL_LAUNCHER_H_
#define REGATTA_COMPILER_LAUNCHER_OPENCL_LAUNCHER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/launcher/launcher.h"

namespace regatta {

// NAME.h, NAME.c, NAME.cl. Never fails.
absl::StatusOr<std::vector<LauncherFile>> WriteOpenClLauncher(
    const LauncherRequest& request);

}  // namespace regatta

#endif  // REGATTA_COMPILER_LAUNCHER_OPENCL_LAUNCHER_H_

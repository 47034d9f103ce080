// What is known of NVIDIA's architectures; no tool is asked.
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_CUDA_TARGET_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_CUDA_TARGET_H_

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace regatta::cuda {

// `target` with the limits of its architecture (mcpu, "sm_80" by default).
// The newest version of CUDA whose NVRTC is known: its drivers and all later
// ones load whatever is made here.
inline constexpr int kNewestDriver = 13;

// `driver` is left out where it limits nothing.
// InvalidArgument: an architecture or a driver that is not known, with those
// that are; a field that means nothing here; a limit above the architecture's.
absl::StatusOr<Target> CompleteCudaTarget(Target target);

}  // namespace regatta::cuda

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_CUDA_TARGET_H_

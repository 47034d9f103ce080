// What is known of NVIDIA's architectures; no tool is asked.
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_CUDA_TARGET_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_CUDA_TARGET_H_

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace regatta::cuda {

// `target` with the limits of its architecture (mcpu, "sm_80" by default).
// `driver` is left out where it limits nothing.
// InvalidArgument: an architecture that is not in the table, with those that
// are; a field that means nothing here; a limit above the architecture's.
absl::StatusOr<Target> CompleteCudaTarget(Target target);

}  // namespace regatta::cuda

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_CUDA_TARGET_H_

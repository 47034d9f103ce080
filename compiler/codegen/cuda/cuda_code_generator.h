// Code for NVIDIA's GPUs: CUDA C++ that NVRTC compiles here, so that a board
// needs the driver only. `loadable` is a CudaBinary (compiler/module).
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_CUDA_CODE_GENERATOR_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_CUDA_CODE_GENERATOR_H_

#include <string>
#include <string_view>

#include "compiler/codegen/code_generator.h"

namespace regatta {

// A kernel that spills registers, or needs more of them than the target has, is
// refused like one that a constraint refuses: FailedPrecondition, "registers:
// ...". Without NVRTC, and for an architecture that it does not know,
// Generate is Unavailable and says what to install.
class CudaCodeGenerator : public CodeGenerator {
 public:
  std::string_view target_kind() const override { return "cuda"; }
  // "NVRTC 13.0", or "no NVRTC" where there is none.
  std::string tool_version(const Target& target) const override;
  std::vector<std::string> ToolVersions() const override;
  absl::Status CheckTool(const Target& target) const override;
  absl::StatusOr<Target> Complete(Target target) const override;
  absl::StatusOr<Target> Host() const override;
  absl::StatusOr<Module> Generate(const LoweredProgram& program,
                                  const Workload& workload,
                                  const Target& target,
                                  std::string_view name) const override;
  // `relocatable` is CUDA C++.
  absl::StatusOr<Module> GeneratePart(const LoweredProgram& program,
                                      const Workload& workload,
                                      const Target& target,
                                      std::string_view name) const override;
  absl::StatusOr<std::string> LinkLibrary(absl::Span<const std::string> parts,
                                          const Target& target) const override;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_CUDA_CODE_GENERATOR_H_

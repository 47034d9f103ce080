// Code for devices that OpenCL drives: `loadable` is OpenCL C source, which the
// board's driver compiles. Nothing of OpenCL is needed here.
#ifndef REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_CODE_GENERATOR_H_
#define REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_CODE_GENERATOR_H_

#include <string>
#include <string_view>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/opencl/opencl_version.h"

namespace regatta {

// Targets name no processor; what counts is what the board says it has:
//   features: OpenCL extensions ("+cl_khr_fp16")
//   vector_bits: widest access to memory, default 128
//   max_group: default 256; local_bytes: default 32768
//   subgroup: not said unless given
//   image_width, image_height: no images unless both are given
// A module's source takes every buffer as a pointer to global memory; f16 and
// bf16 are unsigned short. It must be built without options that let results
// change (-cl-fast-relaxed-math and what it stands for).
class OpenClCodeGenerator : public CodeGenerator {
 public:
  std::string_view target_kind() const override { return "opencl"; }
  std::string tool_version(const Target&) const override {
    return OpenClVersion();
  }
  absl::StatusOr<Target> Complete(Target target) const override;
  absl::StatusOr<Target> Host() const override;
  absl::StatusOr<Module> Generate(const LoweredProgram& program,
                                  const Workload& workload,
                                  const Target& target,
                                  std::string_view name) const override;
  // `relocatable` is source.
  absl::StatusOr<Module> GeneratePart(const LoweredProgram& program,
                                      const Workload& workload,
                                      const Target& target,
                                      std::string_view name) const override;
  absl::StatusOr<std::string> LinkLibrary(absl::Span<const std::string> parts,
                                          const Target& target) const override;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_CODE_GENERATOR_H_

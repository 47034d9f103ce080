// Code for CPUs, through LLVM.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_LLVM_CODE_GENERATOR_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_LLVM_CODE_GENERATOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/code_generator.h"

namespace regatta {

class LlvmCodeGenerator : public CodeGenerator {
 public:
  std::string_view target_kind() const override { return "cpu"; }
  std::string tool_version(const Target&) const override;
  std::vector<std::string> Architectures() const override;
  absl::StatusOr<Target> Complete(Target target) const override;
  absl::StatusOr<Target> Host() const override;
  absl::StatusOr<Target> OfProcessor(const std::string& architecture,
                                     const std::string& cpuinfo) const override;
  absl::StatusOr<Module> Generate(const LoweredProgram& program,
                                  const Workload& workload,
                                  const Target& target,
                                  std::string_view name) const override;
  absl::StatusOr<Module> GeneratePart(const LoweredProgram& program,
                                      const Workload& workload,
                                      const Target& target,
                                      std::string_view name) const override;
  absl::StatusOr<std::string> LinkLibrary(absl::Span<const std::string> parts,
                                          const Target& target) const override;
};

// What Generate makes on its way, as text, for tests and people.
absl::StatusOr<std::string> EmitLlvmIr(const LoweredProgram& program,
                                       const Target& target,
                                       std::string_view name);
absl::StatusOr<std::string> EmitAssembly(const LoweredProgram& program,
                                         const Target& target,
                                         std::string_view name);

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_LLVM_CODE_GENERATOR_H_

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/cuda/cuda_code_generator.h"
#include "compiler/codegen/llvm/llvm_code_generator.h"
#include "compiler/codegen/opencl/opencl_code_generator.h"

namespace regatta {

absl::Span<const CodeGenerator* const> CodeGenerators() {
  static const LlvmCodeGenerator& llvm = *new LlvmCodeGenerator;
  static const OpenClCodeGenerator& opencl = *new OpenClCodeGenerator;
  static const CudaCodeGenerator& cuda = *new CudaCodeGenerator;
  // To add a code generator, add it here.
  static const CodeGenerator* const generators[] = {&llvm, &opencl, &cuda};
  return generators;
}

const CodeGenerator* FindCodeGenerator(std::string_view target_kind) {
  for (const CodeGenerator* generator : CodeGenerators()) {
    if (generator->target_kind() == target_kind) return generator;
  }
  return nullptr;
}

}  // namespace regatta

#include <algorithm>
#include <array>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/llvm/llvm_code_generator.h"

namespace regatta {

const CodeGenerator* FindCodeGenerator(std::string_view target_kind) {
  static const LlvmCodeGenerator& llvm = *new LlvmCodeGenerator;
  // To add a code generator, add it here.
  static const std::array<const CodeGenerator*, 1> generators = {&llvm};
  const auto found = std::find_if(
      generators.begin(), generators.end(),
      [&](const CodeGenerator* g) { return g->target_kind() == target_kind; });
  return found == generators.end() ? nullptr : *found;
}

}  // namespace regatta

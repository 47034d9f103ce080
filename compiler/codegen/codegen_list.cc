#include <algorithm>
#include <iterator>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/llvm/llvm_code_generator.h"

namespace regatta {

const CodeGenerator* FindCodeGenerator(std::string_view target_kind) {
  static const LlvmCodeGenerator& llvm = *new LlvmCodeGenerator;
  // To add a code generator, add it here.
  static const CodeGenerator* const generators[] = {&llvm};
  const auto found = std::find_if(
      std::begin(generators), std::end(generators),
      [&](const CodeGenerator* g) { return g->target_kind() == target_kind; });
  return found == std::end(generators) ? nullptr : *found;
}

}  // namespace regatta

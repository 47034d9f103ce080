// The lists of the compiler with this target in them. They take the place of
// compiler/codegen/codegen_list.cc, compiler/codegen/tool_versions.cc and
// compiler/space/rule_list.cc in this test's program, which shows that a target
// is its own files and an entry in each: nothing else knows the kinds.
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/llvm/llvm_code_generator.h"
#include "compiler/space/rule.h"
#include "compiler/space/rules/device/threads.h"
#include "compiler/space/rules/loops.h"
#include "tests/compiler/plain_c/plain_c_code_generator.h"

namespace regatta {

absl::Span<const CodeGenerator* const> CodeGenerators() {
  static const LlvmCodeGenerator& llvm = *new LlvmCodeGenerator;
  static const plain_c::PlainCCodeGenerator& plain =
      *new plain_c::PlainCCodeGenerator;
  static const CodeGenerator* const generators[] = {&llvm, &plain};
  return generators;
}

const CodeGenerator* FindCodeGenerator(std::string_view target_kind) {
  for (const CodeGenerator* generator : CodeGenerators()) {
    if (generator->target_kind() == target_kind) return generator;
  }
  return nullptr;
}

std::string CompilerVersionOfKind(std::string_view target_kind, int) {
  return target_kind == plain_c::kKind ? CompilerVersionOf(plain_c::kTool) : "";
}

absl::Span<const SpaceRule* const> SpaceRules(std::string_view target_kind) {
  static const SpaceRule* const kCpu[] = {&LoopsRule()};
  // Work-items that share nothing.
  static const SpaceRule* const kPlain[] = {&ThreadsRule()};
  if (target_kind == "cpu") return kCpu;
  if (target_kind == plain_c::kKind) return kPlain;
  return {};
}

std::vector<std::string> SpaceTargetKinds() { return {"cpu", plain_c::kKind}; }

}  // namespace regatta

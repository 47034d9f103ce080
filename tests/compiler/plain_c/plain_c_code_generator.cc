#include "tests/compiler/plain_c/plain_c_code_generator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_like/device_module.h"
#include "compiler/codegen/compiler_version.h"
#include "tests/compiler/plain_c/plain_c_dialect.h"

namespace regatta::plain_c {
namespace {

constexpr int kDefaultMaxGroup = 64;

// Loops over groups and the items of one around the kernel.
std::string RunAll(const ModuleKernel& kernel) {
  std::string text =
      absl::StrCat("\nvoid ", kernel.entry,
                   "_all(void* const* buffers) {\n  int group[3] = {0}, "
                   "item[3] = {0};\n");
  for (const auto& [name, extents] :
       {std::pair("group", &kernel.grid), {"item", &kernel.group}}) {
    for (size_t d = 0; d < extents->size(); ++d) {
      const std::string at = absl::StrCat(name, "[", d, "]");
      absl::StrAppend(&text, "  for (", at, " = 0; ", at, " < ", (*extents)[d],
                      "; ++", at, ")\n");
    }
  }
  return absl::StrCat(text, "  ", kernel.entry, "(group, item, ",
                      absl::StrJoin(kernel.arguments, ", ",
                                    [](std::string* out, int argument) {
                                      absl::StrAppend(out, "buffers[", argument,
                                                      "]");
                                    }),
                      ");\n}\n");
}

}  // namespace

absl::StatusOr<Target> PlainCCodeGenerator::Complete(Target target) const {
  if (target.max_group == 0) target.max_group = kDefaultMaxGroup;
  Target plain;
  plain.kind = kKind;
  plain.max_group = target.max_group;
  if (target != plain) {
    return absl::InvalidArgumentError(
        "target: plain C is described by max_group alone");
  }
  return target;
}

absl::StatusOr<Target> PlainCCodeGenerator::Host() const {
  return absl::UnavailableError("plain C is nobody's machine");
}

absl::StatusOr<Module> PlainCCodeGenerator::Generate(
    const LoweredProgram& program, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(Module module,
                   GeneratePart(program, workload, target, name));
  module.loadable = std::exchange(module.relocatable, "");
  return module;
}

absl::StatusOr<Module> PlainCCodeGenerator::GeneratePart(
    const LoweredProgram& program, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(
      c_like::DeviceSource source,
      c_like::EmitDeviceSource(program, workload, target, name, PlainCDialect(),
                               /*f64_feature=*/""));
  source.module.compiler_version = CompilerVersionOf(tool_version(target));
  source.module.relocatable = absl::StrCat(source.pragmas, source.text);
  for (const ModuleKernel& kernel : source.module.kernels) {
    source.module.relocatable += RunAll(kernel);
  }
  return std::move(source.module);
}

absl::StatusOr<std::string> PlainCCodeGenerator::LinkLibrary(
    absl::Span<const std::string> parts, const Target&) const {
  if (parts.size() != 1) {
    return absl::UnimplementedError("plain C modules stand alone");
  }
  return parts[0];
}

}  // namespace regatta::plain_c

#include "compiler/compile.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/lower/lower.h"
#include "compiler/reference.h"

namespace regatta {
namespace {

absl::StatusOr<const CodeGenerator*> GeneratorFor(const Target& target) {
  const CodeGenerator* generator = FindCodeGenerator(target.kind);
  if (generator == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target: no code generator for kind '", target.kind, "'; kinds are ",
        absl::StrJoin(CodeGenerators(), ", ",
                      [](std::string* out, const CodeGenerator* known) {
                        absl::StrAppend(out, std::string(known->target_kind()));
                      })));
  }
  return generator;
}

absl::StatusOr<Module> Generate(loop::Program program, const Workload& workload,
                                const Target& target, std::string_view name,
                                bool part = false) {
  ASSIGN_OR_RETURN(const CodeGenerator* generator, GeneratorFor(target));
  ASSIGN_OR_RETURN(const LoweredProgram lowered,
                   LowerProgram(std::move(program)));
  ASSIGN_OR_RETURN(
      Module module,
      part ? generator->GeneratePart(lowered, workload, target, name)
           : generator->Generate(lowered, workload, target, name));
  module.workload = workload.text;
  module.workload_key = workload.key;
  return module;
}

absl::StatusOr<Module> CompileAs(const Space& space, std::string_view schedule,
                                 std::string_view name, bool part) {
  ASSIGN_OR_RETURN(const Schedule point, space.Parse(schedule));
  if (std::optional<std::string> refusal = space.Refusal(point)) {
    return absl::FailedPreconditionError(*refusal);
  }
  const SpaceContext& context = space.context();
  ASSIGN_OR_RETURN(Module module, Generate(space.Emit(point), context.workload,
                                           context.target, name, part));
  module.space = std::string(space.name());
  module.space_version = kSpaceVersion;
  module.schedule = space.Print(point);
  return module;
}

}  // namespace

std::string CompilerVersion(const Target& target) {
  const CodeGenerator* generator = FindCodeGenerator(target.kind);
  CHECK(generator != nullptr) << "no code generator for " << target.kind;
  return CompilerVersionOf(generator->tool_version(target));
}

absl::StatusOr<Target> CompleteTarget(const Target& target) {
  ASSIGN_OR_RETURN(const CodeGenerator* generator, GeneratorFor(target));
  return generator->Complete(target);
}

absl::Status CheckTool(const Target& target) {
  ASSIGN_OR_RETURN(const CodeGenerator* generator, GeneratorFor(target));
  return generator->CheckTool(target);
}

absl::StatusOr<Target> HostTarget() { return CodeGenerators()[0]->Host(); }

absl::StatusOr<Target> TargetOfProcessor(const std::string& architecture,
                                         const std::string& cpuinfo) {
  return CodeGenerators()[0]->OfProcessor(architecture, cpuinfo);
}

std::vector<Target> HostTargets() {
  std::vector<Target> targets;
  for (const CodeGenerator* generator : CodeGenerators()) {
    absl::StatusOr<Target> target = generator->Host();
    if (target.ok()) targets.push_back(*std::move(target));
  }
  return targets;
}

absl::StatusOr<Space> CreateSpace(Workload workload, Target target, int threads,
                                  MachineHints hints) {
  SpaceContext context;
  context.workload = std::move(workload);
  context.target = std::move(target);
  context.threads = threads;
  context.hints = hints;
  return Space::Create(std::move(context));
}

absl::StatusOr<Module> Compile(const Space& space, std::string_view schedule,
                               std::string_view name) {
  return CompileAs(space, schedule, name, /*part=*/false);
}

absl::StatusOr<std::string> BoardBinaryHash(const Space& space,
                                            std::string_view schedule) {
  ASSIGN_OR_RETURN(const Module module,
                   Compile(space, schedule, kTrialModuleName));
  return module.BinaryHash();
}

absl::StatusOr<Module> CompilePart(const Space& space,
                                   std::string_view schedule,
                                   std::string_view name) {
  return CompileAs(space, schedule, name, /*part=*/true);
}

absl::StatusOr<std::string> LinkParts(absl::Span<const Module> parts,
                                      const Target& target) {
  ASSIGN_OR_RETURN(const CodeGenerator* generator, GeneratorFor(target));
  std::vector<std::string> objects;
  for (const Module& part : parts) objects.push_back(part.relocatable);
  return generator->LinkLibrary(objects, target);
}

absl::StatusOr<Module> CompileReference(const Workload& workload,
                                        const Target& target,
                                        std::string_view name) {
  const Workload widened = WidenWorkload(workload);
  return Generate(EmitReference(widened, target), workload, target, name);
}

}  // namespace regatta

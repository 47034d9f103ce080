// From lowered loops to a Module, for one family of targets.
//
// To add one: docs/recipes.md, "A target".
#ifndef REGATTA_COMPILER_CODEGEN_CODE_GENERATOR_H_
#define REGATTA_COMPILER_CODEGEN_CODE_GENERATOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/expr/expr.h"
#include "compiler/lower/lower.h"
#include "compiler/module/module.h"
#include "compiler/target/target.h"

namespace regatta {

// Stateless; every method may be called from several threads at once.
class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  virtual std::string_view target_kind() const = 0;  // "cpu"
  // The version of the tool that makes code for `target`: "LLVM 19.1.7".
  virtual std::string tool_version(const Target& target) const = 0;
  // The versions that are here, one for each tool that targets may ask for.
  virtual std::vector<std::string> ToolVersions() const {
    return {tool_version({.kind = std::string(target_kind())})};
  }
  // OK when that tool is here and knows the (complete) target; Unavailable with
  // what to install.
  virtual absl::Status CheckTool(const Target& target) const {
    return absl::OkStatus();
  }
  // Of processors that it makes code for, as triples begin: "aarch64". Empty
  // where targets have no triple.
  virtual std::vector<std::string> Architectures() const { return {}; }
  // `target` with every field that can be derived filled in (vector width and
  // registers from the processor; limits of groups). InvalidArgument when the
  // tool does not know the triple or processor (the message lists near names),
  // or when a field means nothing for this kind.
  virtual absl::StatusOr<Target> Complete(Target target) const = 0;
  // The machine that this process runs on; Unavailable when it is none of this
  // generator's kind, or when that takes a driver to say (a board's agent asks
  // the drivers and describes its devices).
  virtual absl::StatusOr<Target> Host() const = 0;
  // The machine that Linux tells of so: its architecture (uname -m) and
  // /proc/cpuinfo. What Host says there. Unavailable when this generator is not
  // one of processors.
  virtual absl::StatusOr<Target> OfProcessor(const std::string& architecture,
                                             const std::string& cpuinfo) const {
    static_cast<void>(architecture);
    static_cast<void>(cpuinfo);
    return absl::UnavailableError("makes no code for processors");
  }
  // Deterministic: equal arguments give equal bytes. `name` is a C identifier.
  // Fills in every member of Module but `workload*`, `space*` and `schedule`.
  // Internal with the tool's message when it fails.
  virtual absl::StatusOr<Module> Generate(const LoweredProgram& program,
                                          const Workload& workload,
                                          const Target& target,
                                          std::string_view name) const = 0;
  // The same as one of several modules of a library: `loadable` stays empty,
  // and `relocatable` is for LinkLibrary alone.
  virtual absl::StatusOr<Module> GeneratePart(const LoweredProgram& program,
                                              const Workload& workload,
                                              const Target& target,
                                              std::string_view name) const = 0;
  // One loadable of such parts, in their order, with one runtime between them.
  // Deterministic.
  virtual absl::StatusOr<std::string> LinkLibrary(
      absl::Span<const std::string> parts, const Target& target) const = 0;
};

// THE list, in codegen_list.cc; the processor's own generator first.
absl::Span<const CodeGenerator* const> CodeGenerators();
// Null when no generator has that kind.
const CodeGenerator* FindCodeGenerator(std::string_view target_kind);

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_CODE_GENERATOR_H_

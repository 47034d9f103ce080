// A target as small as one can be: C, of which the caller makes a shared object
// as it likes. `loadable` is the source; for each kernel it has
//   void ENTRY_all(void* const* buffers)
// that runs all work-items one after another, on the buffers of the module.
#ifndef REGATTA_TESTS_COMPILER_PLAIN_C_PLAIN_C_CODE_GENERATOR_H_
#define REGATTA_TESTS_COMPILER_PLAIN_C_PLAIN_C_CODE_GENERATOR_H_

#include <string>
#include <string_view>

#include "compiler/codegen/code_generator.h"

namespace regatta::plain_c {

inline constexpr char kKind[] = "plain_c";
inline constexpr char kTool[] = "C 11";

class PlainCCodeGenerator : public CodeGenerator {
 public:
  std::string_view target_kind() const override { return kKind; }
  std::string tool_version(const Target&) const override { return kTool; }
  // A target has max_group (64) and nothing else.
  absl::StatusOr<Target> Complete(Target target) const override;
  absl::StatusOr<Target> Host() const override;
  absl::StatusOr<Module> Generate(const LoweredProgram& program,
                                  const Workload& workload,
                                  const Target& target,
                                  std::string_view name) const override;
  absl::StatusOr<Module> GeneratePart(const LoweredProgram& program,
                                      const Workload& workload,
                                      const Target& target,
                                      std::string_view name) const override;
  // Every part has the dialect's functions; a second one would define them
  // again: Unimplemented for more than one.
  absl::StatusOr<std::string> LinkLibrary(absl::Span<const std::string> parts,
                                          const Target& target) const override;
};

}  // namespace regatta::plain_c

#endif  // REGATTA_TESTS_COMPILER_PLAIN_C_PLAIN_C_CODE_GENERATOR_H_

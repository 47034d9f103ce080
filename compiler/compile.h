// The compiler's front door: workload + target + schedule text -> Module.
// Pure functions; safe from several threads at once.
#ifndef REGATTA_COMPILER_COMPILE_H_
#define REGATTA_COMPILER_COMPILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/expr/expr.h"
#include "compiler/module/module.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"

namespace regatta {

// Digest of the compiler's sources (first 16 hexadecimal digits) and the tool's
// version: "3fa9c1d2e4b58a07/LLVM 19.1.7". A changed version lowers an exact
// answer to a compatible one.
std::string CompilerVersion(const Target& target);

// `target` completed by its code generator.
absl::StatusOr<Target> CompleteTarget(const Target& target);
// OK when this machine can make code for `target` (complete); Unavailable with
// what to install.
absl::Status CheckTool(const Target& target);
// This machine's own target, that of its processor; the targets of all code
// generators that this machine is one of, its own first.
absl::StatusOr<Target> HostTarget();
// The target of another machine's processor, as Linux tells of it: its
// architecture (uname -m) and /proc/cpuinfo.
absl::StatusOr<Target> TargetOfProcessor(const std::string& architecture,
                                         const std::string& cpuinfo);
std::vector<Target> HostTargets();

// The space of a workload on a (complete) target.
absl::StatusOr<Space> CreateSpace(Workload workload, Target target, int threads,
                                  MachineHints hints = {});

// InvalidArgument: `schedule` is no schedule of the space. FailedPrecondition:
// a constraint refuses it; the message begins with the constraint's name.
// Internal: the code generator failed.
absl::StatusOr<Module> Compile(const Space& space, std::string_view schedule,
                               std::string_view name);

// The hash of the binary that a board builds for the schedule, which its
// records hold. Errors as Compile.
absl::StatusOr<std::string> BoardBinaryHash(const Space& space,
                                            std::string_view schedule);

// As Compile, but as a part of a library: `loadable` is empty.
absl::StatusOr<Module> CompilePart(const Space& space,
                                   std::string_view schedule,
                                   std::string_view name);
// One shared object of parts for `target` (complete), in their order, with one
// thread pool between them. The same parts give the same bytes.
absl::StatusOr<std::string> LinkParts(absl::Span<const Module> parts,
                                      const Target& target);

// The workload lowered plainly, one loop nest per stage, with wide (f64)
// accumulation and internal tensors in f64: what run workers compare against.
absl::StatusOr<Module> CompileReference(const Workload& workload,
                                        const Target& target,
                                        std::string_view name);

}  // namespace regatta

#endif  // REGATTA_COMPILER_COMPILE_H_

// From what Linux tells of a machine's processors to their target: for machines
// that have no LLVM to ask. Pure functions.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_PROCESSOR_TARGET_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_PROCESSOR_TARGET_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace regatta::cpu {

// What HostCpuTarget says on a machine with this `architecture` (uname -m) and
// /proc/cpuinfo. Processors that are not known by name get their architecture's
// level ("x86-64-v3") or "generic". InvalidArgument for an architecture that
// LLVM has not.
absl::StatusOr<Target> ProcessorTarget(const std::string& architecture,
                                       const std::string& cpuinfo);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_PROCESSOR_TARGET_H_

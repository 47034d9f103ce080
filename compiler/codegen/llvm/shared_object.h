// Object files to a shared object, by lld in this process.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_SHARED_OBJECT_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_SHARED_OBJECT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace regatta::cpu {

// Links `objects`, in this order, made for `target` (complete). What it takes
// from libc and libm stays undefined, with a DT_NEEDED for each on GNU systems.
// One link at a time in a process; callers wait for each other. Internal with
// the linker's message, or with the symbol that neither library has.
absl::StatusOr<std::string> LinkSharedObject(
    const std::vector<std::string>& objects, const Target& target);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_SHARED_OBJECT_H_

// The thread pool that generated code brings along (runtime/pool.c, compiled
// with this program and linked into modules that have parallel loops).
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_PARALLEL_RUNTIME_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_PARALLEL_RUNTIME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/codegen/llvm/ir_types.h"
#include "llvm/IR/Module.h"

namespace regatta::cpu {

// Emits a call that runs `body(pointers..., iteration, slot)` for iterations
// [0, extent) on at most `threads` threads, slots below `threads`. `table` is
// an array of the `pointers` pointers.
void EmitParallelCall(Builder& builder, llvm::Function* body, int64_t pointers,
                      llvm::Value* table, int64_t extent, int threads);

// Adds the pool to a module that calls it; nothing to a module that does not.
absl::Status LinkParallelRuntime(llvm::Module& module);

// Of libraries with one pool for several modules: leaves the call to be linked
// within the library; whether an object with these undefined symbols has such a
// call; the pool as a module of its own. `module` is empty but for its target.
void ExpectParallelRuntime(llvm::Module& module);
bool NeedsParallelRuntime(const std::vector<std::string>& undefined);
absl::Status EmitParallelRuntime(llvm::Module& module);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_PARALLEL_RUNTIME_H_

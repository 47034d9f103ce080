// The functions that a module exports: see compiler/module/module.h.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_ENTRY_POINTS_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_ENTRY_POINTS_H_

#include <vector>

#include "compiler/codegen/llvm/kernel_emitter.h"

namespace regatta::cpu {

// Emits NAME, NAME_ws, NAME_call and NAME_workspace_bytes. `kernels` are the
// functions that EmitKernel returned for the program's kernels.
void EmitEntryPoints(ModuleState& state,
                     const std::vector<llvm::Function*>& kernels);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_ENTRY_POINTS_H_

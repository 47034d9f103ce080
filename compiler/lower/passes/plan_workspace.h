// Gives every workspace buffer a place in one block. Buffers that are not alive
// in the same kernel may share bytes.
#ifndef REGATTA_COMPILER_LOWER_PASSES_PLAN_WORKSPACE_H_
#define REGATTA_COMPILER_LOWER_PASSES_PLAN_WORKSPACE_H_

#include "compiler/lower/lower.h"

namespace regatta {

// Offsets and strides are multiples of this: one cache line, and the widest
// vector.
inline constexpr int64_t kWorkspaceAlignment = 64;

// Fills in the workspace members of `lowered` from its program. A workspace
// buffer that no kernel touches gets offset -1.
void PlanWorkspace(LoweredProgram& lowered);

}  // namespace regatta

#endif  // REGATTA_COMPILER_LOWER_PASSES_PLAN_WORKSPACE_H_

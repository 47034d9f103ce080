// The buffers of a lowered program as a module lists them.
#ifndef REGATTA_COMPILER_CODEGEN_MODULE_BUFFERS_H_
#define REGATTA_COMPILER_CODEGEN_MODULE_BUFFERS_H_

#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/lower.h"
#include "compiler/module/module.h"

namespace regatta {

// Appends inputs, outputs and the workspace in use to `module.buffers`. Returns
// the index there of every buffer of the program, -1 for those that live inside
// kernels. Workspace in host memory has its place in the one block, in device
// memory it is an allocation of its own.
std::vector<int> DescribeBuffers(const LoweredProgram& lowered,
                                 const Workload& workload, MemorySpace space,
                                 Module& module);

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_MODULE_BUFFERS_H_

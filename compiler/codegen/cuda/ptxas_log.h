// What each kernel takes of a multiprocessor, as the assembler says it in the
// log of a compilation.
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_PTXAS_LOG_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_PTXAS_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regatta::cuda {

struct KernelUsage {
  std::string entry;
  int registers = 0;         // of a thread
  int64_t stack_bytes = 0;   // of a thread, in local memory
  int64_t spill_bytes = 0;   // stored there for want of registers
  int64_t shared_bytes = 0;  // declared by the kernel
};

// One for every kernel that the log tells of, in its order; lines of any other
// form are passed over.
std::vector<KernelUsage> ParsePtxasLog(std::string_view log);

}  // namespace regatta::cuda

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_PTXAS_LOG_H_

// A module as a code generator might have filled it in.
#ifndef REGATTA_TESTS_COMPILER_SAMPLE_MODULE_H_
#define REGATTA_TESTS_COMPILER_SAMPLE_MODULE_H_

#include <string>

#include "compiler/module/module.h"

namespace regatta {

inline Module SampleModule() {
  return {.name = "my_kernel",
          .workload = "matmul(m=3,n=5,k=4)",
          .workload_key = "0123456789abcdef0123456789abcdef",
          .target = "cpu,triple=x86_64-linux-gnu,mcpu=znver4",
          .space = "cpu",
          .space_version = 1,
          .schedule = "contraction{mr=14,nv=2}",
          .compiler_version = "3fa9c1d2e4b58a07/LLVM 19.1.7",
          .threads = 2,
          .buffers = {{.name = "A",
                       .role = BufferRole::kInput,
                       .dtype = DType::kF16,
                       .shape = {3, 4},
                       .bytes = 24},
                      {.name = "B",
                       .role = BufferRole::kInput,
                       .dtype = DType::kI8,
                       .shape = {4, 5},
                       .bytes = 20},
                      {.name = "C",
                       .role = BufferRole::kOutput,
                       .dtype = DType::kF32,
                       .shape = {3, 5},
                       .bytes = 60},
                      {.name = "packed",
                       .role = BufferRole::kWorkspace,
                       .dtype = DType::kF64,
                       .shape = {16},
                       .bytes = 128,
                       .workspace_offset = 128}},
          .kernels = {{.entry = "my_kernel_0",
                       .arguments = {0, 1, 2, 3},
                       .grid = {2}}},
          .host_sequence = {0},
          .workspace_bytes = 256,
          .loadable = std::string("\x7f"
                                  "ELF\0loadable",
                                  13),
          .relocatable = std::string("\x7f"
                                     "ELF\0object",
                                     11)};
}

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_SAMPLE_MODULE_H_

// What each GPU architecture offers: limits of a block and of a processor, and
// throughputs. gpu_architecture.cc is the one table.
//
// Sources: CUDA C++ Programming Guide, "Compute Capabilities" (limits,
// arithmetic throughput of each instruction) and the architecture white papers
// (tensor cores). Values that no source states are marked in the table.
#ifndef REGATTA_COMPILER_PTXSIM_GPU_ARCHITECTURE_H_
#define REGATTA_COMPILER_PTXSIM_GPU_ARCHITECTURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta::ptxsim {

// "Processor" is a streaming multiprocessor.
struct GpuArchitecture {
  int sm = 0;  // 80 of sm_80

  // Limits.
  int max_warps = 0;      // resident on a processor
  int max_blocks = 0;     // resident on a processor
  int registers = 65536;  // of a processor
  int max_registers_per_thread = 255;
  uint32_t shared_bytes = 0;          // of a processor
  uint32_t max_shared_per_block = 0;  // dynamic and static together, opted in
  uint32_t reserved_shared_per_block = 0;  // taken from shared_bytes by each
  uint32_t shared_granule = 128;           // blocks' shares are multiples of it

  // Throughput of a processor in each cycle.
  int schedulers = 4;     // warp instructions issued
  int float32_lanes = 0;  // fp32 operations of threads
  int float64_lanes = 0;
  int float16_lanes = 0;  // operations of threads on packed pairs
  int integer_lanes = 0;
  int special_lanes = 16;   // ex2, rcp, sin, ...; conversions too
  int matrix_macs_f16 = 0;  // multiply-adds through mma.sync, 16-bit inputs
  int matrix_macs_int8 = 0;
  int matrix_macs_tf32 = 0;
  int l2_bytes = 64;  // between processor and L2

  // Latencies in cycles.
  int global_latency = 0;  // a load that misses the first cache
  int shared_latency = 0;
  int barrier_latency = 20;
};

// The row of the table; NotFound names those there are.
absl::StatusOr<GpuArchitecture> FindGpuArchitecture(int sm);
const std::vector<GpuArchitecture>& AllGpuArchitectures();

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_GPU_ARCHITECTURE_H_

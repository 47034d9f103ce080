// From what a launch did to how long a GPU would take for it: a documented
// model, deterministic and free of noise, never fitted to real hardware. Meant
// for comparing schedules of one kernel, not for predicting times;
// docs/ptxsim.md has the formulae and what they leave out. Pure functions;
// thread-safe.
#ifndef REGATTA_COMPILER_PTXSIM_COST_MODEL_H_
#define REGATTA_COMPILER_PTXSIM_COST_MODEL_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/counters.h"
#include "compiler/ptxsim/gpu_architecture.h"

namespace regatta::ptxsim {

// What a block needs of a processor.
struct BlockResources {
  int threads = 0;
  int registers_per_thread = 0;  // of the cubin
  uint32_t shared_bytes = 0;     // static and dynamic, without reserved ones
};

struct Occupancy {
  int blocks = 0;  // resident on a processor at a time; at least 1
  int warps = 0;
  std::string_view limiter;  // "blocks", "warps", "registers" or "shared"
};

// InvalidArgument, saying which limit, for a block that does not fit at all.
absl::StatusOr<Occupancy> ComputeOccupancy(const GpuArchitecture& architecture,
                                           const BlockResources& block);

// A GPU: its architecture and what differs between products.
struct SimulatedGpu {
  GpuArchitecture architecture;
  int processors = 0;
  uint64_t clock_hz = 0;
  uint64_t memory_bytes_per_second = 0;
  uint64_t launch_nanoseconds = 2000;
};

struct Cost {
  double cycles = 0;       // without the launch
  double nanoseconds = 0;  // with it
  Occupancy occupancy;
  uint64_t waves = 0;
  // What a full wave is bound by: "issue", "float32", "float64", "float16",
  // "integer", "special", "matrix", "shared", "l2" or "latency"; "memory" when
  // the memory bus takes longer than all waves.
  std::string_view bound;
};

// `counters` are those of the whole grid of `blocks` blocks, all taken to be
// alike. InvalidArgument for a block that does not fit, for mma with a type
// that the architecture lacks, and for 0 blocks, processors, clock or
// bandwidth.
absl::StatusOr<Cost> EstimateCost(const SimulatedGpu& gpu,
                                  const BlockResources& block, uint64_t blocks,
                                  const Counters& counters);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_COST_MODEL_H_

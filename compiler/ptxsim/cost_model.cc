#include "compiler/ptxsim/cost_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::ptxsim {
namespace {

constexpr int kWarpLanes = 32;
constexpr int kMaxThreads = 1024;
constexpr int kRegisterGranule = 256;  // a warp's registers are multiples of it
constexpr int kSectorBytes = 32;
// Cycles between two instructions of one warp, on average: most depend on the
// one before by four or five cycles, some on none.
constexpr double kCyclesPerInstruction = 2;

uint64_t AlignUp(uint64_t value, uint64_t granule) {
  return (value + granule - 1) / granule * granule;
}
uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// The demands of one block, in cycles of a processor that it has to itself.
struct Demands {
  struct Pipe {
    std::string_view name;
    double cycles;
  };
  std::vector<Pipe> pipes;
  double latency = 0;
};

Demands DemandsOf(const GpuArchitecture& gpu, const BlockResources& block,
                  uint64_t blocks, const Counters& c) {
  const double per_block = 1.0 / static_cast<double>(blocks);
  const auto of = [&](InstructionClass kind) {
    return static_cast<double>(c.Of(kind)) * per_block;
  };
  const auto lanes = [](double instructions, int width) {
    return instructions * kWarpLanes / width;
  };
  const auto macs = [&](uint64_t count, int rate) {
    return count == 0 ? 0 : static_cast<double>(count) * per_block / rate;
  };
  using enum InstructionClass;
  Demands demands;
  demands.pipes = {
      {"issue",
       static_cast<double>(c.issue_slots) * per_block / gpu.schedulers},
      {"float32", lanes(of(kFma) + of(kFloat32), gpu.float32_lanes)},
      {"float64", lanes(of(kFloat64), gpu.float64_lanes)},
      {"float16", lanes(of(kFloat16), gpu.float16_lanes)},
      {"integer", lanes(of(kInteger) + 2 * of(kInteger64), gpu.integer_lanes)},
      {"special", lanes(of(kSpecial) + of(kConvert), gpu.special_lanes)},
      {"matrix", macs(c.matrix_macs_f16, gpu.matrix_macs_f16) +
                     macs(c.matrix_macs_int8, gpu.matrix_macs_int8) +
                     macs(c.matrix_macs_tf32, gpu.matrix_macs_tf32)},
      {"shared", static_cast<double>(c.shared_wavefronts) * per_block},
      {"l2",
       static_cast<double>(c.global_load_sectors + c.global_store_sectors) *
           per_block * kSectorBytes / gpu.l2_bytes},
  };
  const double warps = static_cast<double>(DivideUp(block.threads, kWarpLanes));
  const double per_warp = per_block / warps;
  double fills = static_cast<double>(c.global_fills) * per_warp;
  for (size_t in_flight = 0; in_flight < c.async_waits.size(); ++in_flight) {
    fills += static_cast<double>(c.async_waits[in_flight]) * per_warp /
             static_cast<double>(in_flight + 1);
  }
  demands.latency =
      fills * gpu.global_latency +
      static_cast<double>(c.shared_fills) * per_warp * gpu.shared_latency +
      static_cast<double>(c.barriers) * per_block * gpu.barrier_latency +
      static_cast<double>(c.issue_slots) * per_warp * kCyclesPerInstruction;
  return demands;
}

// Of `resident` blocks that run on a processor at once.
Demands::Pipe WaveTime(const Demands& demands, uint64_t resident) {
  Demands::Pipe longest = {"latency", demands.latency};
  for (const Demands::Pipe& pipe : demands.pipes) {
    const double cycles = pipe.cycles * static_cast<double>(resident);
    if (cycles > longest.cycles) longest = {pipe.name, cycles};
  }
  return longest;
}

absl::Status CheckMatrixTypes(const GpuArchitecture& gpu, const Counters& c) {
  if ((c.matrix_macs_f16 > 0 && gpu.matrix_macs_f16 == 0) ||
      (c.matrix_macs_int8 > 0 && gpu.matrix_macs_int8 == 0) ||
      (c.matrix_macs_tf32 > 0 && gpu.matrix_macs_tf32 == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sm_", gpu.sm, " has no mma of a type that was counted"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Occupancy> ComputeOccupancy(const GpuArchitecture& gpu,
                                           const BlockResources& block) {
  if (block.threads < 1 || block.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", block.threads, " threads, 1 to ",
                     kMaxThreads, " are possible"));
  }
  if (block.registers_per_thread > gpu.max_registers_per_thread) {
    return absl::InvalidArgumentError(
        absl::StrCat(block.registers_per_thread, " registers a thread, sm_",
                     gpu.sm, " has ", gpu.max_registers_per_thread));
  }
  if (block.shared_bytes > gpu.max_shared_per_block) {
    return absl::InvalidArgumentError(
        absl::StrCat(block.shared_bytes, " bytes of shared memory a block, sm_",
                     gpu.sm, " has ", gpu.max_shared_per_block));
  }
  const int warps = (block.threads + kWarpLanes - 1) / kWarpLanes;
  // Each scheduler has its own part of the registers.
  const int of_warp = static_cast<int>(AlignUp(
      std::max(block.registers_per_thread, 1) * kWarpLanes, kRegisterGranule));
  const int warps_by_registers =
      gpu.registers / gpu.schedulers / of_warp * gpu.schedulers;
  const uint64_t share = AlignUp(
      block.shared_bytes + gpu.reserved_shared_per_block, gpu.shared_granule);
  Occupancy best = {.blocks = gpu.max_blocks, .limiter = "blocks"};
  const auto limit = [&](int blocks, std::string_view name) {
    if (blocks < best.blocks) best = {.blocks = blocks, .limiter = name};
  };
  limit(gpu.max_warps / warps, "warps");
  limit(warps_by_registers / warps, "registers");
  if (share > 0) {
    limit(static_cast<int>(gpu.shared_bytes / share), "shared");
  }
  if (best.blocks == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a block of ", block.threads, " threads with ",
        block.registers_per_thread, " registers and ", block.shared_bytes,
        " bytes of shared memory does not "
        "fit on a processor of sm_",
        gpu.sm, ": ", std::string(best.limiter)));
  }
  best.warps = best.blocks * warps;
  return best;
}

absl::StatusOr<Cost> EstimateCost(const SimulatedGpu& gpu,
                                  const BlockResources& block, uint64_t blocks,
                                  const Counters& counters) {
  if (blocks == 0 || gpu.processors <= 0 || gpu.clock_hz == 0 ||
      gpu.memory_bytes_per_second == 0) {
    return absl::InvalidArgumentError(
        "a cost needs blocks, processors, a clock and a memory bandwidth");
  }
  RETURN_IF_ERROR(CheckMatrixTypes(gpu.architecture, counters));
  Cost cost;
  ASSIGN_OR_RETURN(cost.occupancy, ComputeOccupancy(gpu.architecture, block));
  const Demands demands = DemandsOf(gpu.architecture, block, blocks, counters);
  const uint64_t resident = cost.occupancy.blocks;
  const uint64_t processors = gpu.processors;
  const uint64_t full_waves = blocks / (processors * resident);
  const uint64_t left = blocks % (processors * resident);
  const Demands::Pipe full = WaveTime(demands, resident);
  // The rest spreads over the processors; the fullest one decides.
  const Demands::Pipe tail = WaveTime(demands, DivideUp(left, processors));
  cost.waves = full_waves + (left > 0 ? 1 : 0);
  cost.bound = full_waves > 0 ? full.name : tail.name;
  cost.cycles = static_cast<double>(full_waves) * full.cycles +
                (left > 0 ? tail.cycles : 0);
  const double bus_bytes = static_cast<double>(
      (counters.footprint_load_sectors + counters.footprint_store_sectors) *
      kSectorBytes);
  const double bus_cycles = bus_bytes * static_cast<double>(gpu.clock_hz) /
                            static_cast<double>(gpu.memory_bytes_per_second);
  if (bus_cycles > cost.cycles) {
    cost.cycles = bus_cycles;
    cost.bound = "memory";
  }
  cost.nanoseconds = cost.cycles * 1e9 / static_cast<double>(gpu.clock_hz) +
                     static_cast<double>(gpu.launch_nanoseconds);
  return cost;
}

}  // namespace regatta::ptxsim

// What a launch did, counted exactly. Per warp instruction unless it says else.
#ifndef REGATTA_COMPILER_PTXSIM_COUNTERS_H_
#define REGATTA_COMPILER_PTXSIM_COUNTERS_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace regatta::ptxsim {

enum class InstructionClass : uint8_t {
  kFma,      // fp32 multiply-add
  kFloat32,  // other fp32 arithmetic
  kFloat16,  // f16 and bf16 arithmetic, packed or not
  kFloat64,
  kInteger,  // 32-bit and narrower arithmetic, logic, comparisons
  kInteger64,
  kMove,  // mov, cvta: mostly no instruction of the hardware
  kConvert,
  kSpecial,  // ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh
  kMatrix,   // mma
  kSharedLoad,
  kSharedStore,
  kLoadMatrix,  // ldmatrix, stmatrix
  kGlobalLoad,  // generic loads too
  kGlobalStore,
  kAtomic,
  kLocal,
  kConstant,  // ld.param, ld.const
  kAsyncCopy,
  kBarrier,
  kBranch,
  kWarp,  // shfl, vote, match, redux
  kOther,
};
inline constexpr int kInstructionClasses =
    static_cast<int>(InstructionClass::kOther) + 1;

// "fma", "float32", ...
std::string_view InstructionClassName(InstructionClass kind);

struct Counters {
  std::array<uint64_t, kInstructionClasses> warp_instructions = {};
  // Hardware instructions that those stand for, by the table of issue slots in
  // docs/ptxsim.md.
  uint64_t issue_slots = 0;
  uint64_t thread_fmas = 0;       // fp32 multiply-adds of single threads
  uint64_t matrix_macs_f16 = 0;   // multiply-adds of mma with 16-bit inputs
  uint64_t matrix_macs_int8 = 0;  // with 8-bit inputs
  uint64_t matrix_macs_tf32 = 0;
  uint64_t shared_requests = 0;    // warp instructions that touch shared memory
  uint64_t shared_wavefronts = 0;  // passes over the 32 banks that they take
  uint64_t global_load_requests = 0;
  uint64_t global_load_sectors = 0;    // of 32 bytes, distinct within a request
  uint64_t global_store_requests = 0;  // atomics too
  uint64_t global_store_sectors = 0;
  uint64_t async_copy_bytes = 0;
  // Times that a warp met the first use of what a load brings, by a static
  // reading of the program: it stands still for the latency of global or shared
  // memory unless other work hides it.
  uint64_t global_fills = 0;
  uint64_t shared_fills = 0;
  // Times that a warp waited for cp.async copies, by how many groups could stay
  // in flight: 0, 1, 2, 3 or more.
  std::array<uint64_t, 4> async_waits = {};
  uint64_t barriers = 0;  // completed, once a block
  uint64_t divergent_branches = 0;
  // Distinct sectors that the launch read and wrote: what must cross the
  // memory bus at least once. Not a sum over blocks.
  uint64_t footprint_load_sectors = 0;
  uint64_t footprint_store_sectors = 0;

  uint64_t Of(InstructionClass kind) const {
    return warp_instructions[static_cast<int>(kind)];
  }
  uint64_t TotalWarpInstructions() const;
  // Every number times `numerator` / `denominator`, rounded down; the
  // footprints stay. REQUIRES: denominator > 0.
  void Scale(uint64_t numerator, uint64_t denominator);
  bool operator==(const Counters&) const = default;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_COUNTERS_H_

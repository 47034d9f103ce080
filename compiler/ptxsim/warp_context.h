// What an instruction handler sees: a warp, its block and the launch.
#ifndef REGATTA_COMPILER_PTXSIM_WARP_CONTEXT_H_
#define REGATTA_COMPILER_PTXSIM_WARP_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ptxsim/async_copies.h"
#include "compiler/ptxsim/counters.h"
#include "compiler/ptxsim/device_memory.h"
#include "compiler/ptxsim/fault.h"
#include "compiler/ptxsim/footprint.h"
#include "compiler/ptxsim/global_races.h"
#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/race_clocks.h"
#include "compiler/ptxsim/shared_races.h"

namespace regatta::ptxsim {

// One block while it runs. Pointers are not owned.
struct BlockContext {
  const Program* program = nullptr;
  DeviceMemory* memory = nullptr;
  absl::Span<std::byte> module_memory;  // variables at kModuleBase
  uint64_t constant_bytes = 0;  // the first of them, which are read-only
  absl::Span<std::byte> shared;
  std::byte* local = nullptr;  // local_bytes of each thread, one after another
  absl::Span<const std::byte> parameters;
  Counters* counters = nullptr;
  Footprint* footprint = nullptr;
  RaceClocks clocks;
  SharedRaces* shared_races = nullptr;  // null: races are not looked for
  GlobalRaces* global_races = nullptr;
  Dim3 index;
  Dim3 group;
  uint64_t executed = 0;  // warp instructions of the launch so far: the clock
  bool faulted = false;
  Fault fault;
};

struct WarpContext {
  std::byte* frame = nullptr;
  uint32_t mask = 0;   // lanes that execute the current instruction
  uint32_t alive = 0;  // lanes that have not left the kernel
  uint32_t pc = 0;
  int index = 0;  // within the block
  BlockContext* block = nullptr;
  AsyncCopies copies;

  uint32_t Thread(int lane) const { return index * kLanes + lane; }
};

// Records a fault of `lane`; the block stops after this instruction. The first
// one stays.
void SetFault(WarpContext& warp, FaultKind kind, int lane, std::string detail);

// "st.shared.f32 at line 12 by thread (1,0,0)": another access, for a detail.
std::string DescribeAccess(const BlockContext& block, Stamp stamp);

// The coordinates of thread `number` of a block.
Dim3 ThreadIndex(const Dim3& group, uint32_t number);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_WARP_CONTEXT_H_

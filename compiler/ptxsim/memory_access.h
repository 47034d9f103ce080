// Every access of lanes to memory goes through here: bounds, alignment, races
// and counters.
#ifndef REGATTA_COMPILER_PTXSIM_MEMORY_ACCESS_H_
#define REGATTA_COMPILER_PTXSIM_MEMORY_ACCESS_H_

#include <cstddef>
#include <cstdint>

#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/shared_races.h"
#include "compiler/ptxsim/warp_context.h"

namespace regatta::ptxsim {

struct LaneAddresses {
  uint64_t address[kLanes];
};
struct LanePointers {
  std::byte* pointer[kLanes];  // of the lanes asked for only
};

// The addresses that `in` names: the base in operand[place] plus the offset.
LaneAddresses AddressesOf(const Instruction& in, WarpContext& warp, int place);

// Looks up `bytes` at each address of the lanes in `mask`. False after a fault,
// which is recorded. Addresses are relative to `space`. What is counted: one
// request, and its wavefronts or sectors.
bool AccessMemory(WarpContext& warp, Space space, uint32_t mask,
                  const LaneAddresses& at, uint32_t bytes, AccessKind kind,
                  LanePointers& out);

// The passes over 32 banks of 4 bytes that a request takes: accesses of 8 bytes
// go by half warps, of 16 by quarters, and each part takes as many passes as
// the bank with most distinct words.
uint32_t SharedWavefronts(uint32_t mask, const LaneAddresses& at,
                          uint32_t bytes);

// Distinct sectors of 32 bytes.
uint32_t GlobalSectors(uint32_t mask, const LaneAddresses& at, uint32_t bytes);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_MEMORY_ACCESS_H_

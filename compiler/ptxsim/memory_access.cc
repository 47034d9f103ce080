#include "compiler/ptxsim/memory_access.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

std::string Hex(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

std::string OutOf(uint32_t bytes, uint64_t address, const char* what,
                  uint64_t size) {
  return absl::StrCat(bytes, " bytes at ", Hex(address), " of ", what, " of ",
                      size, " bytes");
}

// Faults unless every address is a multiple of `bytes`.
bool CheckAligned(WarpContext& warp, uint32_t mask, const LaneAddresses& at,
                  uint32_t bytes) {
  uint64_t low = 0;
  ForEachLane(mask, [&](int lane) { low |= at.address[lane]; });
  if ((low & (bytes - 1)) == 0) return true;
  ForEachLane(mask, [&](int lane) {
    if ((at.address[lane] & (bytes - 1)) == 0) return;
    SetFault(warp, FaultKind::kMisaligned, lane,
             absl::StrCat(bytes, " bytes at ", Hex(at.address[lane]),
                          ", which is no multiple of ", bytes));
  });
  return false;
}

bool AccessShared(WarpContext& warp, uint32_t mask, const LaneAddresses& at,
                  uint32_t bytes, AccessKind kind, LanePointers& out) {
  BlockContext& block = *warp.block;
  ++block.counters->shared_requests;
  block.counters->shared_wavefronts += SharedWavefronts(mask, at, bytes);
  const uint64_t size = block.shared.size();
  ForEachLane(mask, [&](int lane) {
    const uint64_t address = at.address[lane];
    if (address >= size || size - address < bytes) {
      SetFault(warp, FaultKind::kSharedOutOfBounds, lane,
               OutOf(bytes, address, "shared memory", size));
      return;
    }
    out.pointer[lane] = block.shared.data() + address;
  });
  if (block.faulted) return false;
  if (block.shared_races == nullptr) return true;
  const Clock& now = block.clocks.Of(warp.index);
  const Stamp stamp = MakeStamp(now[warp.index], warp.pc, IsStrong(kind), 0);
  while (mask != 0) {
    const int lane = std::countr_zero(mask);
    mask &= mask - 1;
    const Conflict conflict = block.shared_races->Access(
        at.address[lane], bytes, kind, stamp | warp.Thread(lane), now);
    if (!conflict) continue;
    const bool pending = StampClock(conflict.other) == kPendingClock;
    SetFault(
        warp, pending ? FaultKind::kAsyncNotAwaited : FaultKind::kSharedRace,
        lane,
        absl::StrCat(bytes, " bytes at shared address ", Hex(at.address[lane]),
                     pending                ? " are still being copied by "
                     : conflict.other_wrote ? ", no barrier after the write of "
                                            : ", no barrier after the read of ",
                     DescribeAccess(block, conflict.other)));
    return false;
  }
  return true;
}

// Variables of the module, at kModuleBase; constants come first.
std::byte* ModulePointer(BlockContext& block, uint64_t address, uint32_t bytes,
                         AccessKind kind) {
  const uint64_t offset = address - kModuleBase;
  const uint64_t size = block.module_memory.size();
  if (offset >= size || size - offset < bytes) return nullptr;
  if (IsWrite(kind) && offset < block.constant_bytes) {
    return nullptr;
  }
  return block.module_memory.data() + offset;
}

void GlobalFault(WarpContext& warp, int lane, uint64_t address, uint32_t bytes,
                 AccessKind kind) {
  SetFault(warp, FaultKind::kGlobalOutOfBounds, lane,
           address >= kModuleBase && address < kSharedWindow
               ? absl::StrCat(bytes, " bytes at ", Hex(address),
                              !IsWrite(kind)
                                  ? ", no variable of the module"
                                  : ", no writable variable of the module")
               : warp.block->memory->Describe(address, bytes));
}

bool CheckGlobalRace(WarpContext& warp, int lane, size_t buffer,
                     uint64_t buffer_bytes, uint64_t offset, uint32_t bytes,
                     AccessKind kind) {
  BlockContext& block = *warp.block;
  const Clock& now = block.clocks.Of(warp.index);
  const Stamp stamp =
      MakeStamp(now[warp.index], warp.pc, IsStrong(kind), warp.Thread(lane));
  const GlobalRaces::Result result = block.global_races->Access(
      buffer, buffer_bytes, offset, bytes, kind, stamp, now);
  if (!result.conflict) return true;
  SetFault(warp, FaultKind::kGlobalRace, lane,
           absl::StrCat(bytes, " bytes at offset ", offset, " of buffer ",
                        Hex(block.memory->buffers()[buffer].address),
                        ", nothing orders it after the ",
                        result.conflict.other_wrote ? "write" : "read", " of ",
                        DescribeAccess(block, result.conflict.other),
                        " of block number ", result.block));
  return false;
}

bool AccessGlobal(WarpContext& warp, uint32_t mask, const LaneAddresses& at,
                  uint32_t bytes, AccessKind kind, LanePointers& out) {
  BlockContext& block = *warp.block;
  Counters& counters = *block.counters;
  const bool store = IsWrite(kind);
  (store ? counters.global_store_requests : counters.global_load_requests) += 1;
  (store ? counters.global_store_sectors : counters.global_load_sectors) +=
      GlobalSectors(mask, at, bytes);
  const DeviceMemory::Buffer* buffer = nullptr;
  while (mask != 0) {
    const int lane = std::countr_zero(mask);
    mask &= mask - 1;
    const uint64_t address = at.address[lane];
    if (buffer == nullptr ||
        address - buffer->address > buffer->bytes - bytes) {
      buffer = block.memory->Near(address);
    }
    if (buffer == nullptr || buffer->data == nullptr || buffer->bytes < bytes ||
        address - buffer->address > buffer->bytes - bytes) {
      std::byte* pointer = ModulePointer(block, address, bytes, kind);
      if (pointer == nullptr) {
        GlobalFault(warp, lane, address, bytes, kind);
        return false;
      }
      out.pointer[lane] = pointer;
      buffer = nullptr;
      continue;
    }
    const uint64_t offset = address - buffer->address;
    out.pointer[lane] = buffer->data.get() + offset;
    const size_t number = buffer - block.memory->buffers().data();
    block.footprint->Touch(number, buffer->bytes, offset / 32, store);
    if (block.global_races != nullptr &&
        !CheckGlobalRace(warp, lane, number, buffer->bytes, offset, bytes,
                         kind)) {
      return false;
    }
  }
  return true;
}

bool AccessLocal(WarpContext& warp, uint32_t mask, const LaneAddresses& at,
                 uint32_t bytes, LanePointers& out) {
  BlockContext& block = *warp.block;
  const uint64_t size = block.program->local_bytes;
  ForEachLane(mask, [&](int lane) {
    const uint64_t address = at.address[lane];
    if (address >= size || size - address < bytes) {
      SetFault(warp, FaultKind::kLocalOutOfBounds, lane,
               OutOf(bytes, address, "the thread's local memory", size));
      return;
    }
    out.pointer[lane] = block.local + warp.Thread(lane) * size + address;
  });
  return !block.faulted;
}

bool AccessParam(WarpContext& warp, uint32_t mask, const LaneAddresses& at,
                 uint32_t bytes, AccessKind kind, LanePointers& out) {
  BlockContext& block = *warp.block;
  bool local = false;
  ForEachLane(mask, [&](int lane) {
    const uint64_t address = at.address[lane];
    if ((address & kParamIsLocal) != 0) {
      local = true;
      return;
    }
    const uint64_t size = block.parameters.size();
    if (IsWrite(kind) || address >= size || size - address < bytes) {
      SetFault(warp, FaultKind::kGlobalOutOfBounds, lane,
               OutOf(bytes, address, "the read-only parameters", size));
      return;
    }
    out.pointer[lane] =
        const_cast<std::byte*>(block.parameters.data()) + address;
  });
  if (block.faulted || !local) return !block.faulted;
  LaneAddresses frame;
  for (int lane = 0; lane < kLanes; ++lane) {
    frame.address[lane] = at.address[lane] & ~kParamIsLocal;
  }
  return AccessLocal(warp, mask, frame, bytes, out);
}

// Each lane by the window that its address lies in.
bool AccessGeneric(WarpContext& warp, uint32_t mask, const LaneAddresses& at,
                   uint32_t bytes, AccessKind kind, LanePointers& out) {
  while (mask != 0) {
    const uint64_t window = at.address[std::countr_zero(mask)] & kWindowMask;
    uint32_t part = 0;
    LaneAddresses within;
    ForEachLane(mask, [&](int lane) {
      if ((at.address[lane] & kWindowMask) != window) return;
      part |= 1u << lane;
      within.address[lane] = at.address[lane] - window;
    });
    Space space = Space::kGlobal;
    if (window == kSharedWindow) space = Space::kShared;
    if (window == kLocalWindow) space = Space::kLocal;
    if (window == kParamWindow) space = Space::kParam;
    if (space == Space::kGlobal) within = at;
    if (!AccessMemory(warp, space, part, within, bytes, kind, out)) {
      return false;
    }
    mask &= ~part;
  }
  return true;
}

}  // namespace

LaneAddresses AddressesOf(const Instruction& in, WarpContext& warp, int place) {
  LaneAddresses at;
  const uint64_t offset = static_cast<uint64_t>(in.offset);
  if (in.wide_address) {
    const uint64_t* base = Cells64(warp, in.operand[place]);
    for (int lane = 0; lane < kLanes; ++lane) {
      at.address[lane] = base[lane] + offset;
    }
  } else {
    const uint32_t* base = Cells32(warp, in.operand[place]);
    for (int lane = 0; lane < kLanes; ++lane) {
      at.address[lane] = static_cast<uint32_t>(base[lane] + offset);
    }
  }
  return at;
}

bool AccessMemory(WarpContext& warp, Space space, uint32_t mask,
                  const LaneAddresses& at, uint32_t bytes, AccessKind kind,
                  LanePointers& out) {
  if (mask == 0) return true;
  if (space == Space::kGeneric) {
    return AccessGeneric(warp, mask, at, bytes, kind, out);
  }
  if (!CheckAligned(warp, mask, at, bytes)) return false;
  switch (space) {
    case Space::kShared:
      return AccessShared(warp, mask, at, bytes, kind, out);
    case Space::kLocal:
      return AccessLocal(warp, mask, at, bytes, out);
    case Space::kParam:
      return AccessParam(warp, mask, at, bytes, kind, out);
    default:
      return AccessGlobal(warp, mask, at, bytes, kind, out);
  }
}

uint32_t SharedWavefronts(uint32_t mask, const LaneAddresses& at,
                          uint32_t bytes) {
  const int words = std::max<uint32_t>(bytes / 4, 1);
  const int part_lanes = std::max(kLanes / words, 1);
  uint32_t total = 0;
  for (int first = 0; first < kLanes; first += part_lanes) {
    uint32_t part =
        (mask >> first) & (part_lanes == 32 ? ~0u : (1u << part_lanes) - 1);
    if (part == 0) continue;
    // The distinct words seen in each bank.
    uint64_t seen[32][32];
    uint8_t count[32] = {};
    uint32_t passes = 1;
    ForEachLane(part, [&](int lane) {
      const uint64_t word = at.address[first + lane] / 4;
      for (int i = 0; i < words; ++i) {
        const int bank = (word + i) % 32;
        const uint8_t known = count[bank];
        if (std::find(seen[bank], seen[bank] + known, word + i) !=
            seen[bank] + known) {
          continue;
        }
        seen[bank][count[bank]++] = word + i;
        passes = std::max<uint32_t>(passes, count[bank]);
      }
    });
    total += passes;
  }
  return total;
}

uint32_t GlobalSectors(uint32_t mask, const LaneAddresses& at, uint32_t bytes) {
  uint64_t seen[kLanes];
  uint32_t count = 0;
  ForEachLane(mask, [&](int lane) {
    const uint64_t sector = at.address[lane] / 32;
    // Neighbours mostly share the newest one.
    for (uint32_t i = count; i-- > 0;) {
      if (seen[i] == sector) return;
    }
    seen[count++] = sector;
  });
  return count;
}

}  // namespace regatta::ptxsim

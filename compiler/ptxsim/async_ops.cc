// cp.async: copies from global to shared memory whose data arrive only when
// their thread waits for them. The global data are read when the copy starts.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/memory_access.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

constexpr int kShared = 0;
constexpr int kGlobal = 1;
constexpr int kSourceBytes = 2;

// The shared side of a copy that starts: bounds, alignment, races.
bool StartShared(const Instruction& in, WarpContext& warp,
                 const LaneAddresses& to, uint32_t bytes) {
  BlockContext& block = *warp.block;
  const uint64_t size = block.shared.size();
  ++block.counters->shared_requests;
  block.counters->shared_wavefronts += SharedWavefronts(warp.mask, to, bytes);
  const Clock& now = block.clocks.Of(warp.index);
  ForEachLane(warp.mask, [&](int lane) {
    const uint64_t address = to.address[lane];
    if (address % bytes != 0) {
      SetFault(warp, FaultKind::kMisaligned, lane,
               absl::StrCat("shared address 0x", absl::Hex(address),
                            " is no multiple of ", bytes));
    } else if (address >= size || size - address < bytes) {
      SetFault(warp, FaultKind::kSharedOutOfBounds, lane,
               absl::StrCat(bytes, " bytes at 0x", absl::Hex(address),
                            " of shared memory of ", size, " bytes"));
    }
    if (block.faulted || block.shared_races == nullptr) return;
    const Conflict conflict = block.shared_races->StartCopy(
        address, bytes,
        MakeStamp(now[warp.index], warp.pc, false, warp.Thread(lane)), now);
    if (!conflict) return;
    const bool pending = StampClock(conflict.other) == kPendingClock;
    SetFault(warp,
             pending ? FaultKind::kAsyncNotAwaited : FaultKind::kSharedRace,
             lane,
             absl::StrCat("a copy to shared address 0x", absl::Hex(address),
                          pending                ? " while one is under way by "
                          : conflict.other_wrote ? ", no barrier after the "
                                                   "write of "
                                                 : ", no barrier after the "
                                                   "read of ",
                          DescribeAccess(block, conflict.other)));
  });
  return !block.faulted;
}

void StartCopies(const Instruction& in, WarpContext& warp) {
  BlockContext& block = *warp.block;
  const uint32_t bytes = in.immediate;
  const uint32_t* source_bytes = Cells32(warp, in.operand[kSourceBytes]);
  LaneAddresses to;
  const uint32_t* to32 = Cells32(warp, in.operand[kShared]);
  const uint64_t* to64 = Cells64(warp, in.operand[kShared]);
  LaneAddresses from;
  const uint64_t* from64 = Cells64(warp, in.operand[kGlobal]);
  uint32_t reading = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    to.address[lane] = (in.wide_address ? to64[lane] : to32[lane]) +
                       static_cast<uint64_t>(static_cast<int64_t>(in.target));
    from.address[lane] = from64[lane] + static_cast<uint64_t>(in.offset);
    if (source_bytes[lane] > 0) reading |= 1u << lane;
  }
  if (!StartShared(in, warp, to, bytes)) return;
  LanePointers at;
  if (!AccessMemory(warp, Space::kGlobal, warp.mask & reading, from, bytes,
                    AccessKind::kRead, at)) {
    return;
  }
  ForEachLane(warp.mask, [&](int lane) {
    AsyncCopies::Copy copy = {
        .shared_address = static_cast<uint32_t>(to.address[lane]),
        .lane = static_cast<uint8_t>(lane),
        .bytes = static_cast<uint8_t>(bytes),
        .pc = warp.pc};
    copy.data.fill(std::byte{0});  // what the source lacks becomes zeros
    const uint32_t valid = std::min(source_bytes[lane], bytes);
    if (valid > 0) std::memcpy(copy.data.data(), at.pointer[lane], valid);
    warp.copies.Start(copy);
    block.counters->async_copy_bytes += bytes;
  });
}

void CommitGroup(const Instruction&, WarpContext& warp) {
  warp.copies.Commit(warp.mask);
}

// immediate: groups that may stay in flight; mode 1: all must land.
void WaitGroup(const Instruction& in, WarpContext& warp) {
  BlockContext& block = *warp.block;
  const uint32_t now = block.clocks.Now(warp.index);
  const size_t in_flight = in.mode == 1 ? 0 : std::min<size_t>(in.immediate, 3);
  ++block.counters->async_waits[in_flight];
  warp.copies.Wait(
      warp.mask, in.immediate, in.mode == 1,
      [&](const AsyncCopies::Copy& copy) {
        std::memcpy(block.shared.data() + copy.shared_address, copy.data.data(),
                    copy.bytes);
        if (block.shared_races == nullptr) return;
        block.shared_races->LandCopy(
            copy.shared_address, copy.bytes,
            MakeStamp(now, copy.pc, false, warp.Thread(copy.lane)));
      });
}

void DecodeCopy(InstructionBuilder& b) {
  Instruction& in = b.out();
  b.RequireOperands(3, 4);
  const auto level = b.TakeOneOf({".ca", ".cg"});
  const bool to_shared =
      b.Take(".shared") || b.Take(".shared::cta") || b.Take(".shared::cluster");
  if (!level.has_value() || !to_shared || !b.Take(".global")) {
    return b.Fail("is supported from .global to .shared, .ca or .cg");
  }
  b.TakeOneOf({".L2::64B", ".L2::128B", ".L2::256B"});
  const uint64_t bytes = b.Immediate(2);
  if (!(bytes == 16 || (*level == 0 && (bytes == 4 || bytes == 8)))) {
    return b.Fail("copies 16 bytes, and with .ca also 4 or 8");
  }
  in.immediate = static_cast<uint32_t>(bytes);
  in.space = Space::kShared;
  b.Address(kShared, 0);
  // The builder's fields hold one address; the shared one moves aside.
  const bool wide_shared = in.wide_address;
  if (in.offset < 0 || in.offset > (1 << 24)) {
    return b.Fail("an offset beyond shared memory");
  }
  in.target = static_cast<uint32_t>(in.offset);
  in.space = Space::kGlobal;
  b.Address(kGlobal, 1);
  if (!in.wide_address) return b.Fail("the global address has 64 bits");
  in.wide_address = wide_shared;
  if (b.operands() == 4) {
    b.Source(kSourceBytes, 3, Type::kU32);
  } else {
    in.operand[kSourceBytes] = b.Constant(bytes, Type::kU32);
  }
  in.run = StartCopies;
}

void DecodeAsync(InstructionBuilder& b) {
  Instruction& in = b.out();
  in.kind = InstructionClass::kAsyncCopy;
  if (!b.Take(".async")) return b.Fail("only cp.async is supported");
  if (b.Take(".commit_group")) {
    b.RequireOperands(0, 0);
    in.run = CommitGroup;
  } else if (b.Take(".wait_group")) {
    b.RequireOperands(1, 1);
    in.immediate = static_cast<uint32_t>(b.Immediate(0));
    in.run = WaitGroup;
  } else if (b.Take(".wait_all")) {
    b.RequireOperands(0, 0);
    in.mode = 1;
    in.run = WaitGroup;
  } else {
    DecodeCopy(b);
  }
}

}  // namespace

OpcodeSpan AsyncOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {{"cp", DecodeAsync}};
  return kEntries;
}

}  // namespace regatta::ptxsim

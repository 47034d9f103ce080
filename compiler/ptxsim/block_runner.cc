#include "compiler/ptxsim/block_runner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

// Warp instructions until the next warp has a turn, so that a warp which waits
// for another in a loop does not wait for ever.
constexpr uint64_t kTurn = 1 << 16;

uint32_t LowLanes(uint64_t count) {
  return count >= 32 ? ~0u : (1u << count) - 1;
}

}  // namespace

BlockRunner::BlockRunner(const Program& program, const Dim3& grid,
                         BlockContext& block, uint64_t limit)
    : program_(program),
      grid_(grid),
      block_(block),
      limit_(limit),
      warps_((block.group.Count() + kLanes - 1) / kLanes),
      executions_(program.code.size()),
      idle_lanes_(program.code.size()) {
  for (size_t i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[i];
    // Slots are multiples of 64 bytes from the start.
    warp.memory = std::make_unique<std::byte[]>(program.frame_bytes + 64);
    const auto address = reinterpret_cast<uintptr_t>(warp.memory.get());
    warp.frame = warp.memory.get() + (64 - address % 64) % 64;
    warp.index = static_cast<int>(i);
    warp.block = &block;
    std::memcpy(warp.frame, program.constants.data(), program.constants.size());
  }
}

uint64_t BlockRunner::SpecialValue(Special special, const Warp& warp,
                                   int lane) const {
  const Dim3& group = block_.group;
  const Dim3 thread = ThreadIndex(group, warp.Thread(lane));
  const uint32_t own = 1u << lane;
  switch (special) {
    case Special::kTidX:
      return thread.x;
    case Special::kTidY:
      return thread.y;
    case Special::kTidZ:
      return thread.z;
    case Special::kNtidX:
      return group.x;
    case Special::kNtidY:
      return group.y;
    case Special::kNtidZ:
      return group.z;
    case Special::kCtaidX:
      return block_.index.x;
    case Special::kCtaidY:
      return block_.index.y;
    case Special::kCtaidZ:
      return block_.index.z;
    case Special::kNctaidX:
      return grid_.x;
    case Special::kNctaidY:
      return grid_.y;
    case Special::kNctaidZ:
      return grid_.z;
    case Special::kLaneid:
      return lane;
    case Special::kWarpid:
      return warp.index;
    case Special::kNwarpid:
      return warps_.size();
    // One processor runs all blocks, one after another.
    case Special::kSmid:
      return 0;
    case Special::kNsmid:
      return 1;
    case Special::kGridid:
      return 0;
    case Special::kLanemaskEq:
      return own;
    case Special::kLanemaskLe:
      return own | (own - 1);
    case Special::kLanemaskLt:
      return own - 1;
    case Special::kLanemaskGe:
      return ~(own - 1);
    case Special::kLanemaskGt:
      return ~(own | (own - 1));
    case Special::kDynamicSharedBytes:
      return block_.shared.size() - program_.static_shared_bytes;
    case Special::kTotalSharedBytes:
      return block_.shared.size();
  }
  return 0;
}

void BlockRunner::FillSpecials(Warp& warp) {
  for (const SpecialSlot& slot : program_.specials) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t value = SpecialValue(slot.special, warp, lane);
      if (slot.wide) {
        Cells64(warp, slot.slot)[lane] = value;
      } else {
        Cells32(warp, slot.slot)[lane] = static_cast<uint32_t>(value);
      }
    }
  }
}

void BlockRunner::StartBlock(uint64_t number) {
  const uint64_t threads = block_.group.Count();
  std::memset(block_.shared.data(), 0xFF, block_.shared.size());
  if (program_.local_bytes > 0) {
    std::memset(block_.local, 0xFF, program_.local_bytes * threads);
  }
  block_.clocks.Reset();
  if (block_.shared_races != nullptr) block_.shared_races->Reset();
  if (block_.global_races != nullptr) {
    block_.global_races->StartBlock(static_cast<uint32_t>(number));
  }
  barriers_.Reset();
  live_ = static_cast<int>(warps_.size());
  for (Warp& warp : warps_) {
    warp.alive = LowLanes(threads - uint64_t{kLanes} * warp.index);
    warp.groups.Reset(warp.alive);
    warp.state = State::kReady;
    warp.copies.Reset();
    FillSpecials(warp);
  }
}

bool BlockRunner::Run(uint64_t number) {
  StartBlock(number);
  while (live_ > 0) {
    bool moved = false;
    for (Warp& warp : warps_) {
      if (warp.state != State::kReady) continue;
      moved = true;
      switch (RunWarp(warp)) {
        case Stop::kFault:
          return false;
        case Stop::kDone:
          warp.state = State::kDone;
          --live_;
          CompleteBarriers();
          break;
        case Stop::kBarrier:
          CompleteBarriers();
          break;
        case Stop::kTurnOver:
          break;
      }
    }
    if (!moved) {
      ReportDeadlock();
      return false;
    }
  }
  return true;
}

BlockRunner::Stop BlockRunner::RunWarp(Warp& warp) {
  LaneGroups& groups = warp.groups;
  const Instruction* const code = program_.code.data();
  const uint64_t turn_end = std::min(limit_, block_.executed + kTurn);
  while (true) {
    if (groups.pc >= groups.next_pc || groups.active == 0) {
      if (!groups.Regroup()) {
        if (groups.Empty()) return Stop::kDone;
        ReportMissingLanes(warp);
        return Stop::kFault;
      }
    }
    if (block_.executed >= turn_end) {
      if (block_.executed < limit_) return Stop::kTurnOver;
      ReportTimeout(warp);
      return Stop::kFault;
    }
    const uint32_t pc = groups.pc;
    const Instruction& in = code[pc];
    uint32_t mask = groups.active;
    if (in.guard != kNoSlot) {
      const uint32_t guard = Predicate(warp, in.guard);
      mask &= in.guard_negated ? ~guard : guard;
    }
    warp.mask = mask;
    warp.pc = pc;
    Next next = Next::kGoOn;
    if (in.flow == Flow::kNext) {
      if (mask != 0) in.run(in, warp);
      ++groups.pc;
    } else {
      next = Control(warp, in, mask);
    }
    if (block_.faulted) return Stop::kFault;
    if (next == Next::kTryLater) continue;
    ++executions_[pc];
    ++block_.executed;
    if (mask != ~0u) idle_lanes_[pc] += kLanes - std::popcount(mask);
    if (next == Next::kBarrier) return Stop::kBarrier;
  }
}

BlockRunner::Next BlockRunner::Control(Warp& warp, const Instruction& in,
                                       uint32_t mask) {
  LaneGroups& groups = warp.groups;
  if (mask == 0) {
    ++groups.pc;
    return Next::kGoOn;
  }
  switch (in.flow) {
    case Flow::kNext:
      break;
    case Flow::kBranch:
      if (mask == groups.active) {
        groups.pc = in.target;
        return Next::kGoOn;
      }
      ++block_.counters->divergent_branches;
      groups.Split(mask, in.target);
      break;
    case Flow::kBranchTable:
      BranchByTable(warp, in, mask);
      return Next::kGoOn;
    case Flow::kExit:
      warp.alive &= ~mask;
      groups.active &= ~mask;
      break;
    case Flow::kWarpSync: {
      const uint32_t named =
          Cells32(warp, in.operand[kSyncOperand])[std::countr_zero(mask)];
      if (!AwaitLanes(warp, mask, named & warp.alive)) return Next::kTryLater;
      in.run(in, warp);
      break;
    }
    case Flow::kConverged:
      if (!AwaitLanes(warp, mask, ~0u)) return Next::kTryLater;
      in.run(in, warp);
      break;
    case Flow::kBarrier:
      return ControlBarrier(warp, in, mask);
    case Flow::kTrap:
      SetFault(warp, FaultKind::kTrap, std::countr_zero(mask),
               "the kernel stopped itself");
      break;
  }
  ++groups.pc;
  return Next::kGoOn;
}

BlockRunner::Next BlockRunner::ControlBarrier(Warp& warp, const Instruction& in,
                                              uint32_t mask) {
  if (in.aligned && mask != warp.alive) {
    // All lanes of a warp execute an aligned barrier together.
    SetFault(
        warp, FaultKind::kBarrierDivergence, std::countr_zero(mask),
        absl::StrCat("is for all lanes of the warp, 0x", absl::Hex(warp.alive),
                     ", only 0x", absl::Hex(mask), " are here"));
    return Next::kTryLater;
  }
  if (!AwaitLanes(warp, mask, warp.alive)) return Next::kTryLater;
  ArriveAtBarrier(warp, in, mask);
  // A warp that waits goes on when the barrier releases it.
  if (warp.state == State::kAtBarrier) return Next::kBarrier;
  ++warp.groups.pc;
  return Next::kGoOn;
}

bool BlockRunner::AwaitLanes(Warp& warp, uint32_t mask, uint32_t needed) {
  if ((needed & ~mask) == 0) return true;
  LaneGroups& groups = warp.groups;
  const uint32_t skipping = groups.active & ~mask;
  if ((skipping & needed) == 0) {
    if (skipping != 0) groups.Split(skipping, groups.pc + 1);
    if (!groups.Wait()) ReportMissingLanes(warp);
    return false;
  }
  SetFault(
      warp, FaultKind::kBarrierDivergence, std::countr_zero(mask),
      absl::StrCat("needs lanes 0x", absl::Hex(needed), " of the warp, only 0x",
                   absl::Hex(mask), " execute it"));
  return false;
}

// Lanes that leave the kernel while others wait for them count as missing.
void BlockRunner::ReportMissingLanes(Warp& warp) {
  uint32_t lanes = 0;
  warp.pc = warp.groups.SomeWaiting(lanes);
  SetFault(warp, FaultKind::kBarrierDivergence, std::countr_zero(lanes),
           absl::StrCat("only lanes 0x", absl::Hex(lanes),
                        " of the warp are here and the others that it needs "
                        "cannot come"));
}

void BlockRunner::BranchByTable(Warp& warp, const Instruction& in,
                                uint32_t mask) {
  const std::vector<uint32_t>& table = program_.tables[in.target];
  const uint32_t* index = Cells32(warp, in.operand[0]);
  warp.groups.pc = warp.pc + 1;
  bool split = false;
  while (mask != 0) {
    const int first = std::countr_zero(mask);
    if (index[first] >= table.size()) {
      return SetFault(warp, FaultKind::kTrap, first,
                      absl::StrCat("index ", index[first], " into a table of ",
                                   table.size(), " branch targets"));
    }
    uint32_t same = 0;
    ForEachLane(mask, [&](int lane) {
      if (index[lane] == index[first]) same |= 1u << lane;
    });
    mask &= ~same;
    if (same == warp.groups.active) {
      warp.groups.pc = table[index[first]];
    } else {
      split = true;
      warp.groups.Split(same, table[index[first]]);
    }
  }
  if (split) ++block_.counters->divergent_branches;
}

void BlockRunner::ArriveAtBarrier(Warp& warp, const Instruction& in,
                                  uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const uint32_t number = Cells32(warp, in.operand[1])[lane];
  uint32_t threads = 0;
  if (in.operand[2] != kNoSlot) threads = Cells32(warp, in.operand[2])[lane];
  if (number >= BlockBarriers::kCount ||
      (in.operand[2] != kNoSlot && (threads == 0 || threads % kLanes != 0))) {
    SetFault(warp, FaultKind::kBarrierDivergence, lane,
             absl::StrCat("barrier ", number, " for ", threads,
                          " threads: barriers are 0 to 15, and threads come "
                          "in whole warps"));
    return;
  }
  const bool waits = in.barrier != BarrierKind::kArrive;
  barriers_.Arrive(number, warp.index, waits, threads / kLanes,
                   block_.clocks.Of(warp.index));
  if (in.barrier == BarrierKind::kPopc || in.barrier == BarrierKind::kAnd ||
      in.barrier == BarrierKind::kOr) {
    uint32_t ones = Predicate(warp, in.operand[3]);
    if (in.immediate != 0) ones = ~ones;
    ones &= mask;
    barriers_.Vote(number, std::popcount(ones), ones == mask);
  }
  if (waits) {
    warp.state = State::kAtBarrier;
    warp.barrier = number;
  } else {
    block_.clocks.Tick(warp.index);
    // Its arrival may complete the barrier for those who wait.
    CompleteBarriers();
  }
}

void BlockRunner::CompleteBarriers() {
  for (int barrier = 0; barrier < BlockBarriers::kCount; ++barrier) {
    if (barriers_.Complete(barrier, live_)) Release(barrier);
  }
}

void BlockRunner::Release(int barrier) {
  const BlockBarriers::Barrier done = barriers_.Take(barrier);
  ++block_.counters->barriers;
  for (Warp& warp : warps_) {
    if (((done.waiting >> warp.index) & 1) == 0) continue;
    block_.clocks.Acquire(warp.index, done.joined);
    const Instruction& in = program_.code[warp.groups.pc];
    if (in.barrier == BarrierKind::kPopc) {
      alignas(64) uint32_t out[kLanes];
      std::fill(out, out + kLanes, done.ones);
      Commit(warp, in.operand[0], out);
    } else if (in.barrier == BarrierKind::kAnd) {
      CommitPredicate(warp, in.operand[0], done.all ? ~0u : 0);
    } else if (in.barrier == BarrierKind::kOr) {
      CommitPredicate(warp, in.operand[0], done.ones != 0 ? ~0u : 0);
    }
    ++warp.groups.pc;
    warp.state = State::kReady;
  }
}

void BlockRunner::ReportDeadlock() {
  for (Warp& warp : warps_) {
    if (warp.state != State::kAtBarrier) continue;
    const BlockBarriers::Barrier& barrier = barriers_.Of(warp.barrier);
    warp.pc = warp.groups.pc;
    return SetFault(
        warp, FaultKind::kDeadlock, std::countr_zero(warp.alive),
        absl::StrCat("barrier ", warp.barrier,
                     " never completes: ", barrier.arrived, " of ",
                     barrier.expected > 0 ? barrier.expected : live_,
                     " warps are there, and no warp can go on"));
  }
}

void BlockRunner::ReportTimeout(Warp& warp) {
  warp.pc = warp.groups.pc;
  SetFault(warp, FaultKind::kTimeout, std::countr_zero(warp.groups.active),
           absl::StrCat("more than ", limit_, " warp instructions"));
}

void BlockRunner::Count(Counters& counters) const {
  for (size_t pc = 0; pc < executions_.size(); ++pc) {
    const Instruction& in = program_.code[pc];
    const uint64_t times = executions_[pc];
    counters.warp_instructions[static_cast<int>(in.kind)] += times;
    counters.issue_slots += times * in.issue_slots;
    if (in.fill == Fill::kGlobal) counters.global_fills += times;
    if (in.fill == Fill::kShared) counters.shared_fills += times;
    if (in.kind == InstructionClass::kFma) {
      counters.thread_fmas += times * kLanes - idle_lanes_[pc];
    } else if (in.kind == InstructionClass::kMatrix) {
      uint64_t& macs =
          TypeBytes(in.source_type) == 1   ? counters.matrix_macs_int8
          : TypeBytes(in.source_type) == 2 ? counters.matrix_macs_f16
                                           : counters.matrix_macs_tf32;
      macs += times * in.immediate;
    }
  }
}

}  // namespace regatta::ptxsim

// Barriers, fences, trap. Branches are the decoder's.
#include <cstdint>

#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

constexpr uint64_t kBarriers = 16;

void WarpBarrier(const Instruction&, WarpContext& warp) {
  warp.block->clocks.Tick(warp.index);
}

// Operands: [0] the result of .red, [1] the barrier, [2] the number of threads
// (kNoSlot: all), [3] the predicate of .red; immediate: it is negated.
void DecodeBarrier(InstructionBuilder& b) {
  Instruction& in = b.out();
  in.kind = InstructionClass::kBarrier;
  if (b.Take(".warp")) {
    b.RequireOperands(1, 1);
    if (!b.Take(".sync")) return b.Fail("is supported as .sync");
    in.flow = Flow::kWarpSync;
    in.run = WarpBarrier;
    return b.Source(kSyncOperand, 0, Type::kB32);
  }
  in.flow = Flow::kBarrier;
  b.Take(".cta");
  const auto what = b.TakeOneOf({".sync", ".arrive", ".red"});
  if (!what.has_value()) return b.Fail("needs .sync, .arrive or .red");
  // bar is short for barrier.aligned.
  in.aligned = b.Take(".aligned") || b.statement().opcode == "bar";
  size_t next = 0;
  if (*what == 2) {
    const auto operation = b.TakeOneOf({".popc", ".and", ".or"});
    if (!operation.has_value()) return b.Fail("needs an operation");
    const Type type = b.TakeType();
    if (type != (*operation == 0 ? Type::kU32 : Type::kPred)) {
      return b.Fail("has no form of that type");
    }
    in.barrier = static_cast<BarrierKind>(static_cast<int>(BarrierKind::kPopc) +
                                          *operation);
    b.RequireOperands(3, 4);
    b.Destination(0, 0, type);
    Operand value = b.raw(b.operands() - 1);
    in.immediate = value.negated ? 1 : 0;
    value.negated = false;
    b.SourceOf(3, value, Type::kPred);
    next = 1;
  } else {
    in.barrier = *what == 0 ? BarrierKind::kSync : BarrierKind::kArrive;
    b.RequireOperands(1, 2);
  }
  if (b.raw(next).kind == Operand::Kind::kInteger &&
      b.raw(next).integer >= kBarriers) {
    return b.Fail("there are 16 barriers");
  }
  b.Source(1, next, Type::kB32);
  const size_t operands = b.operands() - (*what == 2 ? 1 : 0);
  if (operands == next + 2) {
    b.Source(2, next + 1, Type::kB32);
  } else if (in.barrier == BarrierKind::kArrive) {
    b.Fail("needs a thread count");
  }
}

void DeviceFence(const Instruction&, WarpContext& warp) {
  if (warp.block->global_races != nullptr) warp.block->global_races->Fence();
}
void Nothing(const Instruction&, WarpContext&) {}

void DecodeFence(InstructionBuilder& b) {
  b.RequireOperands(0, 0);
  b.out().kind = InstructionClass::kOther;
  b.TakeOneOf({".sc", ".acq_rel", ".acquire", ".release"});
  const auto scope = b.TakeOneOf({".cta", ".cluster", ".gl", ".gpu", ".sys"});
  if (!scope.has_value()) return b.Fail("needs a scope");
  b.out().run = *scope >= 2 ? DeviceFence : Nothing;
}

void DecodeTrap(InstructionBuilder& b) {
  b.RequireOperands(0, 0);
  b.out().flow = Flow::kTrap;
}

// nanosleep: nothing to wait for, since other warps run meanwhile anyway.
void DecodeNothing(InstructionBuilder& b) {
  b.RequireOperands(0, 1);
  b.Take(".u32");
  b.out().run = Nothing;
}

}  // namespace

OpcodeSpan ControlOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"bar", DecodeBarrier},       {"barrier", DecodeBarrier},
      {"membar", DecodeFence},      {"fence", DecodeFence},
      {"trap", DecodeTrap},         {"brkpt", DecodeTrap},
      {"nanosleep", DecodeNothing},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

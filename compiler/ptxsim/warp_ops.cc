// Exchange between the lanes of a warp: shfl, vote, match, redux, activemask.
//
// Each names the lanes that must take part; the scheduler runs the instruction
// once all of them that are still in the kernel have arrived.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

void WaitFor(InstructionBuilder& b, size_t index) {
  b.out().flow = Flow::kWarpSync;
  b.out().kind = InstructionClass::kWarp;
  b.Source(kSyncOperand, index, Type::kB32);
}

// mode: 0 up, 1 down, 2 bfly, 3 idx. [0] result, [1] whether the source lane
// was in range (or kNoSlot), [2] value, [3] lane, [4] clamp and segment mask.
void Shuffle(const Instruction& in, WarpContext& warp) {
  const uint32_t* value = Cells32(warp, in.operand[2]);
  const uint32_t* by = Cells32(warp, in.operand[3]);
  const uint32_t* control = Cells32(warp, in.operand[4]);
  alignas(64) uint32_t out[kLanes];
  uint32_t in_range = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int step = static_cast<int>(by[lane] & 31);
    const int segment = static_cast<int>((control[lane] >> 8) & 31);
    const int clamp = static_cast<int>(control[lane] & 31);
    const int first = lane & segment;
    const int last = first | (clamp & ~segment);
    int from = 0;
    bool valid = false;
    switch (in.mode) {
      case 0:
        from = lane - step;
        valid = from >= last;
        break;
      case 1:
        from = lane + step;
        valid = from <= last;
        break;
      case 2:
        from = lane ^ step;
        valid = from <= last;
        break;
      case 3:
        from = first | (step & ~segment);
        valid = from <= last;
        break;
    }
    if (!valid) from = lane;
    in_range |= uint32_t{valid} << lane;
    out[lane] = value[from];
  }
  if (in.operand[1] != kNoSlot) CommitPredicate(warp, in.operand[1], in_range);
  Commit(warp, in.operand[0], out);
}

// The destinations "d" or "d|p".
void ValueAndPerhapsPredicate(InstructionBuilder& b) {
  const Operand& to = b.raw(0);
  if (to.kind == Operand::Kind::kPair) {
    b.DestinationOf(0, to.elements[0], Type::kB32);
    b.DestinationOf(1, to.elements[1], Type::kPred);
  } else {
    b.Destination(0, 0, Type::kB32);
  }
}

void DecodeShuffle(InstructionBuilder& b) {
  b.RequireOperands(5, 5);
  if (!b.Take(".sync")) return b.Fail("is supported as .sync");
  const auto mode = b.TakeOneOf({".up", ".down", ".bfly", ".idx"});
  if (!mode.has_value()) return b.Fail("needs a mode");
  if (b.TakeType() != Type::kB32) return b.Fail("is for .b32");
  b.out().mode = static_cast<uint8_t>(*mode);
  b.out().run = Shuffle;
  ValueAndPerhapsPredicate(b);
  b.Source(2, 1, Type::kB32);
  b.Source(3, 2, Type::kB32);
  b.Source(4, 3, Type::kB32);
  WaitFor(b, 4);
}

// mode: 0 all, 1 any, 2 uni, 3 ballot; immediate 1: of the negated predicate.
void Vote(const Instruction& in, WarpContext& warp) {
  uint32_t bits = Predicate(warp, in.operand[1]);
  if (in.immediate != 0) bits = ~bits;
  bits &= warp.mask;
  if (in.mode == 3) {
    alignas(64) uint32_t out[kLanes];
    std::fill(out, out + kLanes, bits);
    return Commit(warp, in.operand[0], out);
  }
  const bool all = bits == warp.mask;
  const bool any = bits != 0;
  const bool result = in.mode == 0 ? all : in.mode == 1 ? any : all || !any;
  CommitPredicate(warp, in.operand[0], result ? ~0u : 0);
}

void DecodeVote(InstructionBuilder& b) {
  b.RequireOperands(3, 3);
  if (!b.Take(".sync")) return b.Fail("is supported as .sync");
  const auto mode = b.TakeOneOf({".all", ".any", ".uni", ".ballot"});
  if (!mode.has_value()) return b.Fail("needs a mode");
  const Type type = b.TakeType();
  if (type != (*mode == 3 ? Type::kB32 : Type::kPred)) {
    return b.Fail("has no form of that type");
  }
  b.out().mode = static_cast<uint8_t>(*mode);
  b.out().run = Vote;
  b.Destination(0, 0, type);
  Operand value = b.raw(1);
  b.out().immediate = value.negated ? 1 : 0;
  value.negated = false;
  b.SourceOf(1, value, Type::kPred);
  WaitFor(b, 2);
}

// The lanes whose value equals one's own; mode 1: all or none.
template <typename Cell>
void Match(const Instruction& in, WarpContext& warp) {
  const Cell* value = reinterpret_cast<const Cell*>(warp.frame + in.operand[2]);
  alignas(64) uint32_t out[kLanes] = {};
  uint32_t agree = 0;
  ForEachLane(warp.mask, [&](int lane) {
    ForEachLane(warp.mask, [&](int other) {
      if (value[lane] == value[other]) out[lane] |= 1u << other;
    });
    if (out[lane] == warp.mask) agree |= 1u << lane;
    if (in.mode == 1 && out[lane] != warp.mask) out[lane] = 0;
  });
  if (in.operand[1] != kNoSlot) CommitPredicate(warp, in.operand[1], agree);
  Commit(warp, in.operand[0], out);
}

void DecodeMatch(InstructionBuilder& b) {
  b.RequireOperands(3, 3);
  const auto mode = b.TakeOneOf({".any", ".all"});
  if (!mode.has_value() || !b.Take(".sync")) {
    return b.Fail("is supported as .any.sync and .all.sync");
  }
  const Type type = b.TakeType();
  if (type != Type::kB32 && type != Type::kB64) {
    return b.Fail("has no form of that type");
  }
  b.out().mode = static_cast<uint8_t>(*mode);
  b.out().run = type == Type::kB64 ? Match<uint64_t> : Match<uint32_t>;
  ValueAndPerhapsPredicate(b);
  b.Source(2, 1, type);
  WaitFor(b, 2);
}

// mode: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor.
template <typename T>
void Reduce(const Instruction& in, WarpContext& warp) {
  const uint32_t* value = Cells32(warp, in.operand[1]);
  bool first = true;
  T result = 0;
  ForEachLane(warp.mask, [&](int lane) {
    const T x = std::bit_cast<T>(value[lane]);
    if (first) {
      result = x;
    } else {
      switch (in.mode) {
        case 0:
          result =
              std::bit_cast<T>(std::bit_cast<uint32_t>(result) + value[lane]);
          break;
        case 1:
          result = std::min(result, x);
          break;
        case 2:
          result = std::max(result, x);
          break;
        case 3:
          result &= x;
          break;
        case 4:
          result |= x;
          break;
        case 5:
          result ^= x;
          break;
      }
    }
    first = false;
  });
  alignas(64) uint32_t out[kLanes];
  std::fill(out, out + kLanes, std::bit_cast<uint32_t>(result));
  Commit(warp, in.operand[0], out);
}

void DecodeReduce(InstructionBuilder& b) {
  b.RequireOperands(3, 3);
  if (!b.Take(".sync")) return b.Fail("is supported as .sync");
  const auto mode =
      b.TakeOneOf({".add", ".min", ".max", ".and", ".or", ".xor"});
  if (!mode.has_value()) return b.Fail("needs an operation");
  const Type type = b.TakeType();
  if (!IsInteger(type) || TypeBytes(type) != 4) {
    return b.Fail("has no form of that type");
  }
  b.out().mode = static_cast<uint8_t>(*mode);
  b.out().run = IsSigned(type) ? Reduce<int32_t> : Reduce<uint32_t>;
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  WaitFor(b, 2);
}

void ActiveMask(const Instruction& in, WarpContext& warp) {
  alignas(64) uint32_t out[kLanes];
  std::fill(out, out + kLanes, warp.mask);
  Commit(warp, in.operand[0], out);
}

void DecodeActiveMask(InstructionBuilder& b) {
  b.RequireOperands(1, 1);
  if (b.TakeType() != Type::kB32) return b.Fail("is for .b32");
  b.out().kind = InstructionClass::kWarp;
  b.out().run = ActiveMask;
  b.Destination(0, 0, Type::kB32);
}

}  // namespace

OpcodeSpan WarpOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"shfl", DecodeShuffle},          {"vote", DecodeVote},
      {"match", DecodeMatch},           {"redux", DecodeReduce},
      {"activemask", DecodeActiveMask},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

// mov with packing and unpacking, cvta, isspacep.
#include <cstdint>

#include "absl/strings/match.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

template <typename Cell>
void Copy(const Instruction& in, WarpContext& warp) {
  alignas(64) Cell out[kLanes];
  std::memcpy(out, warp.frame + in.operand[1], sizeof(out));
  Commit(warp, in.operand[0], out);
}
void CopyPredicate(const Instruction& in, WarpContext& warp) {
  CommitPredicate(warp, in.operand[0], Predicate(warp, in.operand[1]));
}

uint64_t ReadCell(WarpContext& warp, Slot slot, int lane, bool wide) {
  return wide ? Cells64(warp, slot)[lane] : Cells32(warp, slot)[lane];
}

// Places 1.. hold `vector` parts of in.mode bytes; operand[0] the whole, 64
// bits wide if wide_address.
void PackParts(const Instruction& in, WarpContext& warp) {
  const int bits = 8 * in.mode;
  alignas(64) uint64_t out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    uint64_t whole = 0;
    for (int part = 0; part < in.vector; ++part) {
      whole |= ReadCell(warp, in.operand[1 + part], lane, false)
               << (bits * part);
    }
    out[lane] = whole;
  }
  if (in.wide_address) return Commit(warp, in.operand[0], out);
  alignas(64) uint32_t narrow[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    narrow[lane] = static_cast<uint32_t>(out[lane]);
  }
  Commit(warp, in.operand[0], narrow);
}

void UnpackParts(const Instruction& in, WarpContext& warp) {
  const int bits = 8 * in.mode;
  const uint64_t keep = (uint64_t{1} << bits) - 1;
  // The source may be one of the destinations.
  alignas(64) uint64_t whole[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    whole[lane] = ReadCell(warp, in.operand[0], lane, in.wide_address);
  }
  for (int part = 0; part < in.vector; ++part) {
    alignas(64) uint32_t out[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      out[lane] = static_cast<uint32_t>((whole[lane] >> (bits * part)) & keep);
    }
    Commit(warp, in.operand[1 + part], out);
  }
}

// The launch's count of executed warp instructions stands for the clock.
void ReadClock(const Instruction& in, WarpContext& warp) {
  alignas(64) uint64_t wide[kLanes];
  alignas(64) uint32_t narrow[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    wide[lane] = warp.block->executed;
    narrow[lane] = static_cast<uint32_t>(wide[lane] >> in.mode);
  }
  if (in.type == Type::kB64) return Commit(warp, in.operand[0], wide);
  Commit(warp, in.operand[0], narrow);
}

void DecodeParts(InstructionBuilder& b, Type type, bool pack) {
  const auto parts = b.raw(pack ? 1 : 0).elements;
  const int bytes = TypeBytes(type);
  if (parts.size() < 2 || parts.size() > 4 || bytes % parts.size() != 0) {
    return b.Fail("a vector of 2 or 4 parts of the whole is needed");
  }
  const int part_bytes = bytes / static_cast<int>(parts.size());
  const Type part_type = part_bytes == 4   ? Type::kB32
                         : part_bytes == 2 ? Type::kB16
                                           : Type::kB8;
  Instruction& in = b.out();
  in.mode = static_cast<uint8_t>(part_bytes);
  in.vector = static_cast<uint8_t>(parts.size());
  in.wide_address = bytes == 8;
  in.run = pack ? PackParts : UnpackParts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int place = static_cast<int>(i) + 1;
    if (pack) {
      b.SourceOf(place, parts[i], part_type);
    } else {
      b.DestinationOf(place, parts[i], part_type);
    }
  }
  if (pack) {
    b.Destination(0, 0, type);
  } else {
    b.Source(0, 1, type);
  }
}

void DecodeMove(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  Instruction& in = b.out();
  in.kind = InstructionClass::kMove;
  const Type type = b.TakeType();
  in.type = TypeBytes(type) == 8 ? Type::kB64 : Type::kB32;
  if (type == Type::kPred) {
    in.run = CopyPredicate;
    b.Destination(0, 0, type);
    return b.Source(1, 1, type);
  }
  if (TypeBytes(type) < 2) return b.Fail("has no form of that type");
  if (b.raw(0).kind == Operand::Kind::kList) return DecodeParts(b, type, false);
  if (b.raw(1).kind == Operand::Kind::kList) return DecodeParts(b, type, true);
  b.Destination(0, 0, type);
  const Operand& source = b.raw(1);
  if (source.kind == Operand::Kind::kSpecial &&
      (absl::StartsWith(source.name, "%clock") ||
       absl::StartsWith(source.name, "%globaltimer"))) {
    in.mode = absl::EndsWith(source.name, "_hi") ? 32 : 0;
    in.run = ReadClock;
    return;
  }
  in.run = TypeBytes(type) == 8 ? Copy<uint64_t> : Copy<uint32_t>;
  b.Source(1, 1, type);
}

struct ToGeneric {
  explicit ToGeneric(const Instruction& in)
      : window(static_cast<uint64_t>(in.offset)) {}
  uint64_t operator()(uint64_t address) const { return address + window; }
  uint64_t window;
};

std::optional<uint64_t> TakeWindow(InstructionBuilder& b) {
  if (b.Take(".shared") || b.Take(".shared::cta")) return kSharedWindow;
  if (b.Take(".local")) return kLocalWindow;
  if (b.Take(".param") || b.Take(".param::entry")) return kParamWindow;
  if (b.Take(".global") || b.Take(".const")) return 0;
  b.Fail("needs a state space");
  return std::nullopt;
}

void DecodeConvertAddress(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  b.out().kind = InstructionClass::kMove;
  const bool from_generic = b.Take(".to");
  const auto window = TakeWindow(b);
  if (!window.has_value()) return;
  const Type type = b.TakeType();
  if (TypeBytes(type) != 8) return b.Fail("addresses have 64 bits");
  b.out().offset = static_cast<int64_t>(from_generic ? -*window : *window);
  b.out().run =
      *window == 0 ? Copy<uint64_t> : MapLanes<ToGeneric, uint64_t, uint64_t>;
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
}

// Whether a generic address lies in a window; mode 1: in none.
void TestSpace(const Instruction& in, WarpContext& warp) {
  const uint64_t* address = Cells64(warp, in.operand[1]);
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    bits |= uint32_t{(address[lane] & kWindowMask) ==
                     static_cast<uint64_t>(in.offset)}
            << lane;
  }
  CommitPredicate(warp, in.operand[0], bits);
}

void DecodeIsSpace(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  b.out().kind = InstructionClass::kInteger;
  const auto window = TakeWindow(b);
  if (!window.has_value()) return;
  b.out().offset = static_cast<int64_t>(*window);
  b.out().run = TestSpace;
  b.Destination(0, 0, Type::kPred);
  b.Source(1, 1, Type::kB64);
}

}  // namespace

OpcodeSpan MoveOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"mov", DecodeMove},
      {"cvta", DecodeConvertAddress},
      {"isspacep", DecodeIsSpace},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

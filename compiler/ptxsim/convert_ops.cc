// cvt: between integers and floats of all widths.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

// Instruction: source_type to type; vector and mode are the bytes of the source
// and destination registers; flags as below.
constexpr uint16_t kToWholeNumber = 1;  // .rni .rzi .rmi .rpi

// The frequent ones, between integers as wide as their registers.
template <typename D>
struct Cast : PlainOp {
  using PlainOp::PlainOp;
  template <typename S>
  D operator()(S value) const {
    return static_cast<D>(value);
  }
};

Handler FastInteger(Type to, Type from) {
  const bool wide = TypeBytes(to) == 8;
  if (from == Type::kS32) {
    return wide ? MapLanes<Cast<int64_t>, int64_t, int32_t>
                : MapLanes<Cast<int32_t>, int32_t, int32_t>;
  }
  if (TypeBytes(from) == 4) {
    return wide ? MapLanes<Cast<uint64_t>, uint64_t, uint32_t>
                : MapLanes<Cast<uint32_t>, uint32_t, uint32_t>;
  }
  return wide ? MapLanes<Cast<uint64_t>, uint64_t, uint64_t>
              : MapLanes<Cast<uint32_t>, uint32_t, uint64_t>;
}

// An integer of `type` in the low bits of `bits`, extended to 64.
uint64_t Extend(uint64_t bits, Type type) {
  const int unused = 64 - 8 * TypeBytes(type);
  if (unused == 0) return bits;
  if (IsSigned(type)) {
    return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >>
                                 unused);
  }
  return bits << unused >> unused;
}

double ToDouble(uint64_t bits, Type type, bool flush) {
  switch (type) {
    case Type::kF16:
      return FromF16(static_cast<uint16_t>(bits));
    case Type::kBF16:
      return FromBF16(static_cast<uint16_t>(bits));
    case Type::kF64:
      return std::bit_cast<double>(bits);
    default: {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      return flush ? FlushF32(value) : value;
    }
  }
}

double ToWhole(double value, Rounding mode) {
  switch (mode) {
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

uint64_t FloatBits(double value, const Instruction& in) {
  if (in.saturate) value = value > 0 ? (value < 1 ? value : 1) : 0;
  if (in.relu && !(value > 0) && !std::isnan(value)) value = 0;
  switch (in.type) {
    case Type::kF16:
      return ToF16(value, in.rounding);
    case Type::kBF16:
      return ToBF16(value, in.rounding);
    case Type::kTF32:
      return uint64_t{RoundToBits<8, 10>(value, in.rounding)} << 13;
    case Type::kF64:
      return std::bit_cast<uint64_t>(value);
    default: {
      const float rounded = ToF32(value, in.rounding);
      return std::bit_cast<uint32_t>(in.flush ? FlushF32(rounded) : rounded);
    }
  }
}

// The range of an integer type; 64-bit bounds as their values are. NaN is 0,
// but the highest bit alone where either side has 64 bits (PTX ISA, cvt).
uint64_t ClampToInteger(double value, Type from, Type type) {
  const int bits = 8 * TypeBytes(type);
  if (std::isnan(value)) {
    return from == Type::kF64 || bits == 64 ? uint64_t{1} << (bits - 1) : 0;
  }
  if (IsSigned(type)) {
    const double limit = std::ldexp(1.0, bits - 1);
    if (value >= limit) {
      return static_cast<uint64_t>((int64_t{1} << (bits - 1)) - 1);
    }
    if (value <= -limit) return ~uint64_t{0} << (bits - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  if (value <= 0) return 0;
  if (value >= std::ldexp(1.0, bits)) return ~uint64_t{0} >> (64 - bits);
  return static_cast<uint64_t>(value);
}

// An integer as a double that a further rounding can be done on: exact up to 53
// bits, else made odd (see OddSum).
double OddDouble(uint64_t bits, bool is_signed) {
  const bool negative = is_signed && static_cast<int64_t>(bits) < 0;
  uint64_t magnitude = negative ? -bits : bits;
  const int excess = 64 - 53 - std::countl_zero(magnitude | 1);
  if (excess > 0) {
    const uint64_t rest = magnitude & ((uint64_t{1} << excess) - 1);
    magnitude = (magnitude ^ rest) | (rest != 0 ? uint64_t{1} << excess : 0);
  }
  const double value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

// .sat between integers: into the range of the destination.
uint64_t SaturateInteger(uint64_t bits, Type from, Type to) {
  const int width = 8 * TypeBytes(to);
  const bool negative = IsSigned(from) && static_cast<int64_t>(bits) < 0;
  if (IsSigned(to)) {
    const uint64_t most = (~uint64_t{0} >> 1) >> (64 - width);
    if (negative) {
      const int64_t least = -static_cast<int64_t>(most) - 1;
      return static_cast<uint64_t>(std::max(static_cast<int64_t>(bits), least));
    }
    return std::min(bits, most);
  }
  return negative ? 0 : std::min(bits, ~uint64_t{0} >> (64 - width));
}

uint64_t ConvertOne(uint64_t bits, const Instruction& in) {
  const Type from = in.source_type;
  if (IsFloat(from)) {
    double value = ToDouble(bits, from, in.flush);
    if ((in.flags & kToWholeNumber) != 0) value = ToWhole(value, in.rounding);
    return IsFloat(in.type) ? FloatBits(value, in)
                            : ClampToInteger(value, from, in.type);
  }
  bits = Extend(bits, from);
  if (IsFloat(in.type)) {
    if (in.type == Type::kF64) {
      return std::bit_cast<uint64_t>(
          IsSigned(from) ? static_cast<double>(static_cast<int64_t>(bits))
                         : static_cast<double>(bits));
    }
    return FloatBits(OddDouble(bits, IsSigned(from)), in);
  }
  if (in.saturate) bits = SaturateInteger(bits, from, in.type);
  return Extend(bits, in.type);
}

void Convert(const Instruction& in, WarpContext& warp) {
  alignas(64) uint64_t out[kLanes];
  if (in.vector == 8) {
    const uint64_t* from = Cells64(warp, in.operand[1]);
    for (int lane = 0; lane < kLanes; ++lane) {
      out[lane] = ConvertOne(from[lane], in);
    }
  } else {
    const uint32_t* from = Cells32(warp, in.operand[1]);
    for (int lane = 0; lane < kLanes; ++lane) {
      out[lane] = ConvertOne(from[lane], in);
    }
  }
  if (in.mode == 8) return Commit(warp, in.operand[0], out);
  alignas(64) uint32_t narrow[kLanes];
  const uint32_t keep = in.mode == 4 ? ~0u : (1u << (8 * in.mode)) - 1;
  for (int lane = 0; lane < kLanes; ++lane) {
    narrow[lane] = static_cast<uint32_t>(out[lane]) & keep;
  }
  Commit(warp, in.operand[0], narrow);
}

// Two f32 into one packed register; the first becomes the high half.
void ConvertPacked(const Instruction& in, WarpContext& warp) {
  const uint32_t* high = Cells32(warp, in.operand[1]);
  const uint32_t* low = Cells32(warp, in.operand[2]);
  Instruction one = in;
  one.type = in.type == Type::kF16x2 ? Type::kF16 : Type::kBF16;
  alignas(64) uint32_t out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    out[lane] = static_cast<uint32_t>((ConvertOne(high[lane], one) << 16) |
                                      ConvertOne(low[lane], one));
  }
  Commit(warp, in.operand[0], out);
}

// cvt.pack.sat.s8.s32.b32 d, a, b, c: d = c << 16 | sat(a) << 8 | sat(b), and
// without the .b32, or for 16 bits, without c.
void Pack(const Instruction& in, WarpContext& warp) {
  const uint32_t* a = Cells32(warp, in.operand[1]);
  const uint32_t* b = Cells32(warp, in.operand[2]);
  const uint32_t* c = Cells32(warp, in.operand[3]);
  const int bits = 8 * TypeBytes(in.type);
  const uint32_t keep = (1u << bits) - 1;
  alignas(64) uint32_t out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto part = [&](uint32_t value) {
      return static_cast<uint32_t>(SaturateInteger(Extend(value, Type::kS32),
                                                   Type::kS32, in.type)) &
             keep;
    };
    out[lane] = (part(a[lane]) << bits) | part(b[lane]);
    if (bits == 8) out[lane] |= c[lane] << 16;
  }
  Commit(warp, in.operand[0], out);
}

void DecodePack(InstructionBuilder& b) {
  Instruction& in = b.out();
  b.Take(".sat");
  in.type = b.TakeType();
  in.source_type = b.TakeType();
  const bool third = b.Take(".b32");
  if (in.source_type != Type::kS32 || TypeBytes(in.type) > 2 ||
      !IsInteger(in.type)) {
    return b.Fail("packs .s32 into integers of 8 or 16 bits");
  }
  b.RequireOperands(third ? 4 : 3, third ? 4 : 3);
  in.run = Pack;
  b.Destination(0, 0, Type::kB32);
  b.Source(1, 1, Type::kS32);
  b.Source(2, 2, Type::kS32);
  if (third) {
    b.Source(3, 3, Type::kB32);
  } else {
    in.operand[3] = b.Constant(0, Type::kB32);
  }
}

void TakeRoundings(InstructionBuilder& b) {
  Instruction& in = b.out();
  if (const auto whole = b.TakeOneOf({".rni", ".rzi", ".rmi", ".rpi"})) {
    in.rounding = static_cast<Rounding>(*whole);
    in.flags |= kToWholeNumber;
  } else if (b.Take(".rna")) {
    in.rounding = Rounding::kNearestAway;
  } else {
    b.TakeRounding();
  }
}

void DecodeConvert(InstructionBuilder& b) {
  Instruction& in = b.out();
  in.kind = InstructionClass::kConvert;
  if (b.Take(".pack")) return DecodePack(b);
  TakeRoundings(b);
  b.TakeFlush();
  in.saturate = b.Take(".sat");
  in.relu = b.Take(".relu");
  in.type = b.TakeType();
  in.source_type = b.TakeType();
  if (in.type == Type::kPred || in.source_type == Type::kPred ||
      in.source_type == Type::kTF32) {
    return b.Fail("has no form of that type");
  }
  if (in.type == Type::kF16x2 || in.type == Type::kBF16x2) {
    b.RequireOperands(3, 3);
    if (in.source_type != Type::kF32) return b.Fail("packs two .f32");
    in.run = ConvertPacked;
    b.Destination(0, 0, Type::kB32);
    b.Source(1, 1, Type::kF32);
    b.Source(2, 2, Type::kF32);
    return;
  }
  if (in.source_type == Type::kF16x2 || in.source_type == Type::kBF16x2) {
    return b.Fail("has no form of that type");
  }
  if (IsFloat(in.source_type) && IsInteger(in.type) &&
      (in.flags & kToWholeNumber) == 0) {
    return b.Fail("to an integer needs .rni, .rzi, .rmi or .rpi");
  }
  b.RequireOperands(2, 2);
  in.mode = static_cast<uint8_t>(
      b.MemoryRegister(0, b.raw(0), TypeBytes(in.type), false));
  in.vector = static_cast<uint8_t>(
      b.MemoryRegister(1, b.raw(1), TypeBytes(in.source_type), true));
  in.run = Convert;
  const bool whole_registers = in.mode == TypeBytes(in.type) &&
                               in.vector == TypeBytes(in.source_type) &&
                               in.mode >= 4 && in.vector >= 4;
  if (IsInteger(in.type) && IsInteger(in.source_type)) {
    in.kind = InstructionClass::kMove;  // a register of a pair, or a sign
    if (!in.saturate && whole_registers) {
      in.run = FastInteger(in.type, in.source_type);
    }
  }
}

}  // namespace

OpcodeSpan ConvertOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {{"cvt", DecodeConvert}};
  return kEntries;
}

}  // namespace regatta::ptxsim

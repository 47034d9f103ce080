// Logic, shifts and bit fields.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

struct And : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a) const {
    return ~a;
  }
};
struct LogicalNot : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a) const {
    return a == 0;
  }
};
// Amounts beyond the width are clamped to it.
struct ShiftLeft : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, uint32_t by) const {
    return by < 8 * sizeof(T) ? static_cast<T>(a << by) : T{0};
  }
};
struct ShiftRight : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, uint32_t by) const {
    constexpr uint32_t kBits = 8 * sizeof(T);
    if (by >= kBits) return a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> by);
  }
};

uint32_t& PredicateOf(WarpContext& warp, const Instruction& in, int place) {
  return Predicate(warp, in.operand[place]);
}

template <typename Op>
void OnPredicates(const Instruction& in, WarpContext& warp) {
  CommitPredicate(warp, in.operand[0],
                  Op()(PredicateOf(warp, in, 1), PredicateOf(warp, in, 2)));
}
void NotPredicate(const Instruction& in, WarpContext& warp) {
  CommitPredicate(warp, in.operand[0], ~PredicateOf(warp, in, 1));
}

void SetKind(InstructionBuilder& b, Type type) {
  const bool wide = TypeBytes(type) == 8;
  b.out().kind =
      wide ? InstructionClass::kInteger64 : InstructionClass::kInteger;
  b.out().issue_slots = wide ? 2 : 1;
}

// The type of a logic instruction: bits or a predicate.
Type TakeBits(InstructionBuilder& b, bool predicate_too) {
  const Type type = b.TakeType();
  if (type == Type::kPred ? !predicate_too
                          : !IsInteger(type) || TypeBytes(type) < 2) {
    b.Fail("has no form of that type");
  }
  SetKind(b, type);
  return type;
}

template <typename Op>
void DecodeLogic(InstructionBuilder& b) {
  b.RequireOperands(3, 3);
  const Type type = TakeBits(b, true);
  switch (TypeBytes(type)) {
    case 0:
      b.out().run = OnPredicates<Op>;
      break;
    case 2:
      b.out().run = MapLanes<Op, uint16_t, uint16_t, uint16_t>;
      break;
    case 8:
      b.out().run = MapLanes<Op, uint64_t, uint64_t, uint64_t>;
      break;
    default:
      b.out().run = MapLanes<Op, uint32_t, uint32_t, uint32_t>;
  }
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, type);
}

template <typename Op>
void DecodeNot(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  const Type type = TakeBits(b, true);
  switch (TypeBytes(type)) {
    case 0:
      b.out().run = NotPredicate;
      break;
    case 2:
      b.out().run = MapLanes<Op, uint16_t, uint16_t>;
      break;
    case 8:
      b.out().run = MapLanes<Op, uint64_t, uint64_t>;
      break;
    default:
      b.out().run = MapLanes<Op, uint32_t, uint32_t>;
  }
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
}

template <typename Op>
Handler ShiftHandler(Type type) {
  switch (type) {
    case Type::kS16:
      return MapLanes<Op, int16_t, int16_t, uint32_t>;
    case Type::kS32:
      return MapLanes<Op, int32_t, int32_t, uint32_t>;
    case Type::kS64:
      return MapLanes<Op, int64_t, int64_t, uint32_t>;
    case Type::kU16:
    case Type::kB16:
      return MapLanes<Op, uint16_t, uint16_t, uint32_t>;
    case Type::kU64:
    case Type::kB64:
      return MapLanes<Op, uint64_t, uint64_t, uint32_t>;
    default:
      return MapLanes<Op, uint32_t, uint32_t, uint32_t>;
  }
}

template <typename Op>
void DecodeShift(InstructionBuilder& b) {
  b.RequireOperands(3, 3);
  const Type type = TakeBits(b, false);
  b.out().run = ShiftHandler<Op>(type);
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, Type::kU32);
}

// shf: 32 bits out of 64.
struct Funnel {
  explicit Funnel(const Instruction& in)
      : left((in.mode & 1) != 0), wrap((in.mode & 2) != 0) {}
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t by) const {
    by = wrap ? by & 31 : std::min(by, 32u);
    const uint64_t both = (uint64_t{high} << 32) | low;
    return static_cast<uint32_t>(left ? (both << by) >> 32 : both >> by);
  }
  bool left, wrap;
};

void DecodeFunnel(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  const auto direction = b.TakeOneOf({".r", ".l"});
  const auto mode = b.TakeOneOf({".clamp", ".wrap"});
  if (!direction || !mode) return b.Fail("needs .l or .r, .wrap or .clamp");
  if (b.TakeType() != Type::kB32) return b.Fail("is for .b32");
  SetKind(b, Type::kB32);
  b.out().mode = static_cast<uint8_t>(*direction + 2 * *mode);
  b.out().run = MapLanes<Funnel, uint32_t, uint32_t, uint32_t, uint32_t>;
  b.Destination(0, 0, Type::kB32);
  for (int i = 1; i <= 3; ++i) b.Source(i, i, Type::kB32);
}

struct Lop3 {
  explicit Lop3(const Instruction& in) : table(in.immediate) {}
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t result = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      if (((table >> row) & 1) == 0) continue;
      result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) &
                ((row & 1) != 0 ? c : ~c);
    }
    return result;
  }
  uint32_t table;
};

void DecodeLop3(InstructionBuilder& b) {
  b.RequireOperands(5, 5);
  if (b.TakeType() != Type::kB32) return b.Fail("is for .b32");
  SetKind(b, Type::kB32);
  b.out().immediate = static_cast<uint32_t>(b.Immediate(4));
  b.out().run = MapLanes<Lop3, uint32_t, uint32_t, uint32_t, uint32_t>;
  b.Destination(0, 0, Type::kB32);
  for (int i = 1; i <= 3; ++i) b.Source(i, i, Type::kB32);
}

// The field [at, at + length) of a, extended by its sign or by zeros; bits
// beyond the end repeat the highest bit of a, or are zeros.
struct ExtractField : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, uint32_t at, uint32_t length) const {
    constexpr uint32_t kBits = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    at &= 255;
    length = std::min(length & 255, kBits);
    if (length == 0) return 0;
    const T shifted = ShiftRight()(a, at);
    if (std::is_signed_v<T>) {
      // Beyond the top the field's sign is that of a.
      if (at + length >= kBits) return shifted;
      return static_cast<T>(static_cast<U>(shifted) << (kBits - length)) >>
             (kBits - length);
    }
    if (length == kBits) return shifted;
    return shifted & ((T{1} << length) - 1);
  }
};
struct InsertField : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, T b, uint32_t at, uint32_t length) const {
    constexpr uint32_t kBits = 8 * sizeof(T);
    at &= 255;
    length = std::min(length & 255, kBits);
    if (at >= kBits || length == 0) return b;
    const T ones = length == kBits ? ~T{0} : (T{1} << length) - 1;
    return (b & ~(ones << at)) | ((a & ones) << at);
  }
};

void DecodeExtract(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  const Type type = b.TakeType();
  SetKind(b, type);
  using X = ExtractField;
  switch (type) {
    case Type::kS32:
      b.out().run = MapLanes<X, int32_t, int32_t, uint32_t, uint32_t>;
      break;
    case Type::kU32:
      b.out().run = MapLanes<X, uint32_t, uint32_t, uint32_t, uint32_t>;
      break;
    case Type::kS64:
      b.out().run = MapLanes<X, int64_t, int64_t, uint32_t, uint32_t>;
      break;
    case Type::kU64:
      b.out().run = MapLanes<X, uint64_t, uint64_t, uint32_t, uint32_t>;
      break;
    default:
      return b.Fail("has no form of that type");
  }
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, Type::kU32);
  b.Source(3, 3, Type::kU32);
}

void DecodeInsert(InstructionBuilder& b) {
  b.RequireOperands(5, 5);
  const Type type = b.TakeType();
  SetKind(b, type);
  using I = InsertField;
  if (type == Type::kB32) {
    b.out().run = MapLanes<I, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  } else if (type == Type::kB64) {
    b.out().run = MapLanes<I, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>;
  } else {
    return b.Fail("has no form of that type");
  }
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, type);
  b.Source(3, 3, Type::kU32);
  b.Source(4, 4, Type::kU32);
}

struct CountOnes : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  uint32_t operator()(T a) const {
    return std::popcount(a);
  }
};
struct CountZeros : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  uint32_t operator()(T a) const {
    return std::countl_zero(a);
  }
};
struct Reverse : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a) const {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
      result = static_cast<T>(result << 1) | ((a >> i) & 1);
    }
    return result;
  }
};
// The highest bit that differs from the sign, or how far it is from the top.
struct FindBit {
  explicit FindBit(const Instruction& in) : distance(in.mode == 1) {}
  template <typename T>
  uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const uint32_t zeros = std::countl_zero(bits);
    return distance ? zeros : 8 * sizeof(T) - 1 - zeros;
  }
  bool distance;
};

template <typename Op, bool same_type>
void DecodeBits(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  const Type type = b.TakeType();
  if (type != Type::kB32 && type != Type::kB64) {
    return b.Fail("is for .b32 and .b64");
  }
  SetKind(b, type);
  using Wide = std::conditional_t<same_type, uint64_t, uint32_t>;
  b.out().run = TypeBytes(type) == 8 ? MapLanes<Op, Wide, uint64_t>
                                     : MapLanes<Op, uint32_t, uint32_t>;
  b.Destination(0, 0, same_type ? type : Type::kB32);
  b.Source(1, 1, type);
}

void DecodeFindBit(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  b.out().mode = b.Take(".shiftamt") ? 1 : 0;
  const Type type = b.TakeType();
  SetKind(b, type);
  switch (type) {
    case Type::kS32:
      b.out().run = MapLanes<FindBit, uint32_t, int32_t>;
      break;
    case Type::kU32:
      b.out().run = MapLanes<FindBit, uint32_t, uint32_t>;
      break;
    case Type::kS64:
      b.out().run = MapLanes<FindBit, uint32_t, int64_t>;
      break;
    case Type::kU64:
      b.out().run = MapLanes<FindBit, uint32_t, uint64_t>;
      break;
    default:
      return b.Fail("has no form of that type");
  }
  b.Destination(0, 0, Type::kU32);
  b.Source(1, 1, type);
}

// Picks bytes of b:a by the nibbles of c.
struct Permute : PlainOp {
  using PlainOp::PlainOp;
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint64_t bytes = (uint64_t{b} << 32) | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t pick = (c >> (4 * i)) & 15;
      uint32_t byte = (bytes >> (8 * (pick & 7))) & 255;
      if ((pick & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;  // its sign
      result |= byte << (8 * i);
    }
    return result;
  }
};

void DecodePermute(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  if (b.TakeType() != Type::kB32) return b.Fail("is for .b32");
  SetKind(b, Type::kB32);
  b.out().run = MapLanes<Permute, uint32_t, uint32_t, uint32_t, uint32_t>;
  b.Destination(0, 0, Type::kB32);
  for (int i = 1; i <= 3; ++i) b.Source(i, i, Type::kB32);
}

}  // namespace

OpcodeSpan BitOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"and", DecodeLogic<And>},
      {"or", DecodeLogic<Or>},
      {"xor", DecodeLogic<Xor>},
      {"not", DecodeNot<Not>},
      {"cnot", DecodeNot<LogicalNot>},
      {"shl", DecodeShift<ShiftLeft>},
      {"shr", DecodeShift<ShiftRight>},
      {"shf", DecodeFunnel},
      {"lop3", DecodeLop3},
      {"bfe", DecodeExtract},
      {"bfi", DecodeInsert},
      {"bfind", DecodeFindBit},
      {"popc", DecodeBits<CountOnes, false>},
      {"clz", DecodeBits<CountZeros, false>},
      {"brev", DecodeBits<Reverse, true>},
      {"prmt", DecodePermute},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

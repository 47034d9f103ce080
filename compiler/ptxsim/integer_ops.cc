// Integer arithmetic. Overflow wraps around; a division by zero gives all ones,
// its remainder the dividend, as the hardware's code does for unsigned numbers.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "compiler/ptxsim/arithmetic.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

// Unsigned and at least 32 bits, so that nothing is promoted to a signed int.
template <typename T>
using Wrap =
    std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <typename T>
struct Add : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const {
    return static_cast<T>(Wrap<T>(a) + Wrap<T>(b));
  }
};
template <typename T>
struct Sub : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const {
    return static_cast<T>(Wrap<T>(a) - Wrap<T>(b));
  }
};
template <typename T>
struct MulLow : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const {
    return static_cast<T>(Wrap<T>(a) * Wrap<T>(b));
  }
};
template <typename T>
struct MulHigh : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 8) {
      using Wide =
          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
      return static_cast<T>((Wide{a} * Wide{b}) >> 64);
    } else {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return static_cast<T>((Wide{a} * Wide{b}) >> (8 * sizeof(T)));
    }
  }
};
template <typename T>
struct Div : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub<T>()(0, a);
    return static_cast<T>(a / b);
  }
};
template <typename T>
struct Rem : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
template <typename T>
struct Min : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const { return std::min(a, b); }
};
template <typename T>
struct Max : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b) const { return std::max(a, b); }
};
template <typename T>
struct Abs : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a) const {
    return std::is_signed_v<T> && a < T{0} ? Sub<T>()(0, a) : a;
  }
};
template <typename T>
struct Neg : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a) const { return Sub<T>()(0, a); }
};
template <typename T>
struct MadLow : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b, T c) const { return Add<T>()(MulLow<T>()(a, b), c); }
};
template <typename T>
struct MadHigh : PlainOp {
  using PlainOp::PlainOp;
  T operator()(T a, T b, T c) const { return Add<T>()(MulHigh<T>()(a, b), c); }
};

int32_t Saturate(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                          std::numeric_limits<int32_t>::max()));
}
struct AddSaturate : PlainOp {
  using PlainOp::PlainOp;
  int32_t operator()(int32_t a, int32_t b) const {
    return Saturate(int64_t{a} + b);
  }
};
struct SubSaturate : PlainOp {
  using PlainOp::PlainOp;
  int32_t operator()(int32_t a, int32_t b) const {
    return Saturate(int64_t{a} - b);
  }
};

template <typename W>
struct MulWide : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  W operator()(T a, T b) const {
    return static_cast<W>(a) * static_cast<W>(b);
  }
};
template <typename W>
struct MadWide : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  W operator()(T a, T b, W c) const {
    return Add<W>()(static_cast<W>(a) * static_cast<W>(b), c);
  }
};

template <template <typename> class Op, typename T>
Handler ForCount() {
  if constexpr (std::is_invocable_v<Op<T>, T>) return MapLanes<Op<T>, T, T>;
  if constexpr (std::is_invocable_v<Op<T>, T, T>) {
    return MapLanes<Op<T>, T, T, T>;
  }
  if constexpr (std::is_invocable_v<Op<T>, T, T, T>) {
    return MapLanes<Op<T>, T, T, T, T>;
  }
}

template <template <typename> class Op>
Handler ForType(Type type) {
  switch (type) {
    case Type::kS16:
      return ForCount<Op, int16_t>();
    case Type::kS32:
      return ForCount<Op, int32_t>();
    case Type::kS64:
      return ForCount<Op, int64_t>();
    case Type::kU16:
    case Type::kB16:
      return ForCount<Op, uint16_t>();
    case Type::kU64:
    case Type::kB64:
      return ForCount<Op, uint64_t>();
    default:
      return ForCount<Op, uint32_t>();
  }
}

Type Wider(Type type) {
  switch (type) {
    case Type::kS16:
      return Type::kS32;
    case Type::kU16:
      return Type::kU32;
    case Type::kS32:
      return Type::kS64;
    default:
      return Type::kU64;
  }
}

Handler WideHandler(Type type, bool add) {
  switch (type) {
    case Type::kS16:
      return add ? MapLanes<MadWide<int32_t>, int32_t, int16_t, int16_t,
                            int32_t>
                 : MapLanes<MulWide<int32_t>, int32_t, int16_t, int16_t>;
    case Type::kU16:
      return add ? MapLanes<MadWide<uint32_t>, uint32_t, uint16_t, uint16_t,
                            uint32_t>
                 : MapLanes<MulWide<uint32_t>, uint32_t, uint16_t, uint16_t>;
    case Type::kS32:
      return add ? MapLanes<MadWide<int64_t>, int64_t, int32_t, int32_t,
                            int64_t>
                 : MapLanes<MulWide<int64_t>, int64_t, int32_t, int32_t>;
    default:
      return add ? MapLanes<MadWide<uint64_t>, uint64_t, uint32_t, uint32_t,
                            uint64_t>
                 : MapLanes<MulWide<uint64_t>, uint64_t, uint32_t, uint32_t>;
  }
}

void DecodeProduct(InstructionBuilder& b, bool add, Type type) {
  const auto part = b.TakeOneOf({".lo", ".hi", ".wide"});
  if (!part.has_value()) return b.Fail("needs .lo, .hi or .wide");
  Type wide = type;
  if (*part == 2) {
    if (TypeBytes(type) == 8) return b.Fail(".wide of 64-bit numbers");
    wide = Wider(type);
    b.out().run = WideHandler(type, add);
  } else if (*part == 1) {
    b.out().run = add ? ForType<MadHigh>(type) : ForType<MulHigh>(type);
  } else {
    b.out().run = add ? ForType<MadLow>(type) : ForType<MulLow>(type);
  }
  if (TypeBytes(type) == 8) b.out().issue_slots = 4;
  b.Destination(0, 0, wide);
  b.Source(1, 1, type);
  b.Source(2, 2, type);
  if (add) b.Source(3, 3, wide);
}

Handler SimpleHandler(Arithmetic op, Type type) {
  switch (op) {
    case Arithmetic::kAdd:
      return ForType<Add>(type);
    case Arithmetic::kSub:
      return ForType<Sub>(type);
    case Arithmetic::kDiv:
      return ForType<Div>(type);
    case Arithmetic::kRem:
      return ForType<Rem>(type);
    case Arithmetic::kMin:
      return ForType<Min>(type);
    case Arithmetic::kMax:
      return ForType<Max>(type);
    case Arithmetic::kAbs:
      return ForType<Abs>(type);
    case Arithmetic::kNeg:
      return ForType<Neg>(type);
    default:
      return nullptr;
  }
}

}  // namespace

void DecodeInteger(InstructionBuilder& b, Arithmetic op, Type type) {
  if ((op == Arithmetic::kAdd || op == Arithmetic::kSub ||
       op == Arithmetic::kMad) &&
      b.Take(".cc")) {
    return DecodeCarry(b, op, type, /*takes_carry=*/false,
                       /*leaves_carry=*/true);
  }
  const bool wide = TypeBytes(type) == 8;
  b.out().kind =
      wide ? InstructionClass::kInteger64 : InstructionClass::kInteger;
  if (op == Arithmetic::kMul || op == Arithmetic::kMad) {
    return DecodeProduct(b, op == Arithmetic::kMad, type);
  }
  b.out().issue_slots = wide ? 2 : 1;
  if (op == Arithmetic::kDiv || op == Arithmetic::kRem) {
    b.out().issue_slots = wide ? 70 : 16;
  }
  b.out().run = SimpleHandler(op, type);
  if (b.out().run == nullptr) return b.Fail("has no integer form");
  if (b.Take(".sat")) {
    if (type != Type::kS32 ||
        (op != Arithmetic::kAdd && op != Arithmetic::kSub)) {
      return b.Fail(".sat is for add and sub of .s32");
    }
    b.out().run = op == Arithmetic::kAdd
                      ? MapLanes<AddSaturate, int32_t, int32_t, int32_t>
                      : MapLanes<SubSaturate, int32_t, int32_t, int32_t>;
  }
  b.Destination(0, 0, type);
  for (int i = 1; i <= SourceCount(op); ++i) b.Source(i, i, type);
}

}  // namespace regatta::ptxsim

// setp, set, selp, slct, testp.
#include <cmath>
#include <cstdint>

#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

// In the order of the names below. The last six are true for unordered numbers.
enum Comparison : int {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
  kComparisons
};

template <int comparison, typename T>
bool Compare(T a, T b) {
  switch (comparison) {
    case kEq:
      return a == b;
    case kNe:
      return a < b || a > b;  // false for NaN
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kGe:
      return a >= b;
    case kEqu:
      return !(a < b || a > b);
    case kNeu:
      return !(a == b);
    case kLtu:
      return !(a >= b);
    case kLeu:
      return !(a > b);
    case kGtu:
      return !(a <= b);
    case kGeu:
      return !(a < b);
    case kNum:
      return a == a && b == b;
    case kNan:
      return !(a == a && b == b);
  }
  return false;
}

// How values of a register type are compared.
template <typename T>
struct Loader {
  using Value = T;
  static T Load(CellOf<T> cell, bool) { return FromCell<T>(cell); }
};
template <>
struct Loader<float> {
  static float Load(uint32_t cell, bool flush) {
    const float value = std::bit_cast<float>(cell);
    return flush ? FlushF32(value) : value;
  }
};
struct F16 {};
struct BF16 {};
template <>
struct Loader<F16> {
  static float Load(uint32_t cell, bool) {
    return FromF16(static_cast<uint16_t>(cell));
  }
};
template <>
struct Loader<BF16> {
  static float Load(uint32_t cell, bool) {
    return FromBF16(static_cast<uint16_t>(cell));
  }
};

enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };
constexpr uint16_t kNegatedOperand = 1;  // Instruction::flags

uint32_t CombineWith(const Instruction& in, WarpContext& warp, uint32_t bits) {
  if (in.mode == 0) return bits;
  uint32_t other = Predicate(warp, in.operand[4]);
  if ((in.flags & kNegatedOperand) != 0) other = ~other;
  switch (static_cast<Combine>(in.mode)) {
    case Combine::kAnd:
      return bits & other;
    case Combine::kOr:
      return bits | other;
    case Combine::kXor:
      return bits ^ other;
    default:
      return bits;
  }
}

template <typename T, int comparison>
uint32_t CompareLanes(const Instruction& in, WarpContext& warp) {
  const auto* a =
      reinterpret_cast<const CellOf<T>*>(warp.frame + in.operand[2]);
  const auto* b =
      reinterpret_cast<const CellOf<T>*>(warp.frame + in.operand[3]);
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    bits |= static_cast<uint32_t>(
                Compare<comparison>(Loader<T>::Load(a[lane], in.flush),
                                    Loader<T>::Load(b[lane], in.flush)))
            << lane;
  }
  return bits;
}

// operand[0] = comparison of [2] and [3], combined with [4]; [1] is the same of
// the opposite comparison.
template <typename T, int comparison>
void SetPredicate(const Instruction& in, WarpContext& warp) {
  const uint32_t bits = CompareLanes<T, comparison>(in, warp);
  const uint32_t first = CombineWith(in, warp, bits);
  const uint32_t second = CombineWith(in, warp, ~bits);
  CommitPredicate(warp, in.operand[0], first);
  if (in.operand[1] != kNoSlot) CommitPredicate(warp, in.operand[1], second);
}

// set: the same into a register, all ones or 1.0.
template <typename T, int comparison>
void SetRegister(const Instruction& in, WarpContext& warp) {
  const uint32_t bits =
      CombineWith(in, warp, CompareLanes<T, comparison>(in, warp));
  alignas(64) uint32_t out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    out[lane] = (bits >> lane) & 1 ? in.immediate : 0;
  }
  Commit(warp, in.operand[0], out);
}

template <typename T, bool predicate, size_t... I>
Handler ForComparison(int comparison, std::index_sequence<I...>) {
  static constexpr Handler kTable[] = {predicate ? SetPredicate<T, I>
                                                 : SetRegister<T, I>...};
  return kTable[comparison];
}

template <typename T, bool predicate, int count>
Handler For(int comparison) {
  if (comparison >= count) return nullptr;
  return ForComparison<T, predicate>(comparison,
                                     std::make_index_sequence<count>());
}

template <bool predicate>
Handler CompareHandler(Type type, int comparison) {
  constexpr int kIntegers = kGe + 1;
  switch (type) {
    case Type::kS16:
      return For<int16_t, predicate, kIntegers>(comparison);
    case Type::kU16:
    case Type::kB16:
      return For<uint16_t, predicate, kIntegers>(comparison);
    case Type::kS32:
      return For<int32_t, predicate, kIntegers>(comparison);
    case Type::kU32:
    case Type::kB32:
      return For<uint32_t, predicate, kIntegers>(comparison);
    case Type::kS64:
      return For<int64_t, predicate, kIntegers>(comparison);
    case Type::kU64:
    case Type::kB64:
      return For<uint64_t, predicate, kIntegers>(comparison);
    case Type::kF32:
      return For<float, predicate, kComparisons>(comparison);
    case Type::kF64:
      return For<double, predicate, kComparisons>(comparison);
    case Type::kF16:
      return For<F16, predicate, kComparisons>(comparison);
    case Type::kBF16:
      return For<BF16, predicate, kComparisons>(comparison);
    default:
      return nullptr;
  }
}

// The comparison, the operation that combines, .ftz; the operand to combine
// with is at `index`.
int TakeComparison(InstructionBuilder& b, size_t index) {
  auto comparison =
      b.TakeOneOf({".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".equ", ".neu",
                   ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan"});
  if (!comparison.has_value()) {
    // Names of unsigned comparisons.
    comparison = b.TakeOneOf({".lo", ".ls", ".hi", ".hs"});
    if (!comparison.has_value()) {
      b.Fail("needs a comparison");
      return 0;
    }
    comparison = *comparison + kLt;
  }
  if (const auto combine = b.TakeOneOf({".and", ".or", ".xor"})) {
    b.RequireOperands(index + 1, index + 1);
    b.out().mode = static_cast<uint8_t>(*combine + 1);
    Operand with = b.raw(index);
    if (with.negated) b.out().flags |= kNegatedOperand;
    with.negated = false;
    b.SourceOf(4, with, Type::kPred);
  } else {
    b.RequireOperands(index, index);
  }
  b.TakeFlush();
  return *comparison;
}

void SetKind(InstructionBuilder& b, Type type) {
  b.out().kind = TypeBytes(type) == 8 ? InstructionClass::kInteger64
                                      : InstructionClass::kInteger;
  if (type == Type::kF64) b.out().kind = InstructionClass::kFloat64;
  b.out().issue_slots = TypeBytes(type) == 8 && type != Type::kF64 ? 2 : 1;
}

void DecodeSetp(InstructionBuilder& b) {
  const int comparison = TakeComparison(b, 3);
  const Type type = b.TakeType();
  SetKind(b, type);
  b.out().run = CompareHandler<true>(type, comparison);
  if (b.out().run == nullptr) return b.Fail("has no form of that type");
  const Operand& destination = b.raw(0);
  if (destination.kind == Operand::Kind::kPair) {
    b.DestinationOf(0, destination.elements[0], Type::kPred);
    b.DestinationOf(1, destination.elements[1], Type::kPred);
  } else {
    b.Destination(0, 0, Type::kPred);
  }
  b.Source(2, 1, type);
  b.Source(3, 2, type);
}

void DecodeSet(InstructionBuilder& b) {
  const int comparison = TakeComparison(b, 3);
  const Type result = b.TakeType();
  const Type type = b.TakeType();
  SetKind(b, type);
  if (TypeBytes(result) != 4) return b.Fail("has no form of that type");
  b.out().immediate = result == Type::kF32 ? 0x3F800000u : ~0u;
  b.out().run = CompareHandler<false>(type, comparison);
  if (b.out().run == nullptr) return b.Fail("has no form of that type");
  b.Destination(0, 0, result);
  b.Source(2, 1, type);
  b.Source(3, 2, type);
}

template <typename Cell>
void Select(const Instruction& in, WarpContext& warp) {
  const Cell* a = reinterpret_cast<const Cell*>(warp.frame + in.operand[1]);
  const Cell* b = reinterpret_cast<const Cell*>(warp.frame + in.operand[2]);
  const uint32_t bits = Predicate(warp, in.operand[3]);
  alignas(64) Cell out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    out[lane] = (bits >> lane) & 1 ? a[lane] : b[lane];
  }
  Commit(warp, in.operand[0], out);
}

void DecodeSelect(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  const Type type = b.TakeType();
  if (TypeBytes(type) < 2) return b.Fail("has no form of that type");
  SetKind(b, type == Type::kF64 ? Type::kB64 : type);
  b.out().run = TypeBytes(type) == 8 ? Select<uint64_t> : Select<uint32_t>;
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, type);
  b.Source(3, 3, Type::kPred);
}

// a where c >= 0, else b.
template <typename Cell, bool real>
void SelectBySign(const Instruction& in, WarpContext& warp) {
  const Cell* a = reinterpret_cast<const Cell*>(warp.frame + in.operand[1]);
  const Cell* b = reinterpret_cast<const Cell*>(warp.frame + in.operand[2]);
  const uint32_t* c = Cells32(warp, in.operand[3]);
  alignas(64) Cell out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool first = real ? Loader<float>::Load(c[lane], in.flush) >= 0
                            : static_cast<int32_t>(c[lane]) >= 0;
    out[lane] = first ? a[lane] : b[lane];
  }
  Commit(warp, in.operand[0], out);
}

void DecodeSlct(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  b.TakeFlush();
  const Type type = b.TakeType();
  const Type sign = b.TakeType();
  if (TypeBytes(type) < 2 || (sign != Type::kS32 && sign != Type::kF32)) {
    return b.Fail("has no form of that type");
  }
  SetKind(b, Type::kB32);
  const bool wide = TypeBytes(type) == 8;
  if (sign == Type::kF32) {
    b.out().run =
        wide ? SelectBySign<uint64_t, true> : SelectBySign<uint32_t, true>;
  } else {
    b.out().run =
        wide ? SelectBySign<uint64_t, false> : SelectBySign<uint32_t, false>;
  }
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, type);
  b.Source(3, 3, sign);
}

// What std::fpclassify calls it, for float and double.
template <typename T>
void TestProperty(const Instruction& in, WarpContext& warp) {
  const CellOf<T>* a = Cells<T>(warp, in.operand[1]);
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const T value = FromCell<T>(a[lane]);
    bool holds = false;
    switch (in.mode) {
      case 0:
        holds = std::isfinite(value);
        break;
      case 1:
        holds = std::isinf(value);
        break;
      case 2:
        holds = !std::isnan(value);
        break;
      case 3:
        holds = std::isnan(value);
        break;
      case 4:
        holds = std::isnormal(value);
        break;
      case 5:
        holds = std::fpclassify(value) == FP_SUBNORMAL;
        break;
    }
    bits |= uint32_t{holds} << lane;
  }
  CommitPredicate(warp, in.operand[0], bits);
}

void DecodeTest(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  const auto property = b.TakeOneOf({".finite", ".infinite", ".number",
                                     ".notanumber", ".normal", ".subnormal"});
  if (!property.has_value()) return b.Fail("needs a property");
  const Type type = b.TakeType();
  if (type != Type::kF32 && type != Type::kF64) return b.Fail("is for floats");
  b.out().kind = InstructionClass::kInteger;
  b.out().mode = static_cast<uint8_t>(*property);
  b.out().run = type == Type::kF32 ? TestProperty<float> : TestProperty<double>;
  b.Destination(0, 0, Type::kPred);
  b.Source(1, 1, type);
}

}  // namespace

OpcodeSpan CompareOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"setp", DecodeSetp}, {"set", DecodeSet},    {"selp", DecodeSelect},
      {"slct", DecodeSlct}, {"testp", DecodeTest},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

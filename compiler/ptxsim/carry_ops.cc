// Integer arithmetic of several words: the carry that add.cc, sub.cc and mad.cc
// leave and addc, subc and madc take. A thread has one carry; of a subtraction
// it is the borrow.
#include <cstdint>
#include <type_traits>

#include "compiler/ptxsim/arithmetic.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

// Instruction: operands 1 to 3 are the sources, 4 the carry; mode is the
// operation, flags as below.
constexpr int kCarry = 4;
constexpr uint16_t kTakesCarry = 1;
constexpr uint16_t kLeavesCarry = 2;
constexpr uint16_t kHighPart = 4;

// The low or high half of a product; T decides about the sign.
template <typename T>
std::make_unsigned_t<T> Product(T a, T b, bool high) {
  using U = std::make_unsigned_t<T>;
  if (!high) return static_cast<U>(a) * static_cast<U>(b);
  using Wide =
      std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<U>((Wide{a} * Wide{b}) >> (8 * sizeof(T)));
}

template <typename T>
void Run(const Instruction& in, WarpContext& warp) {
  using U = std::make_unsigned_t<T>;
  const auto op = static_cast<Arithmetic>(in.mode);
  const U* a = Cells<U>(warp, in.operand[1]);
  const U* b = Cells<U>(warp, in.operand[2]);
  const U* c = Cells<U>(warp, in.operand[op == Arithmetic::kMad ? 3 : 1]);
  const uint32_t carries = Predicate(warp, in.operand[kCarry]);
  alignas(64) U out[kLanes];
  uint32_t left = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const U taken = (in.flags & kTakesCarry) != 0 ? (carries >> lane) & 1 : 0;
    U first = a[lane];
    U second = b[lane];
    if (op == Arithmetic::kMad) {
      first = Product(static_cast<T>(first), static_cast<T>(second),
                      (in.flags & kHighPart) != 0);
      second = c[lane];
    }
    using Wide = unsigned __int128;
    // Beyond the width: a carry, or the borrow of a negative number.
    const Wide result = op == Arithmetic::kSub ? Wide{first} - second - taken
                                               : Wide{first} + second + taken;
    out[lane] = static_cast<U>(result);
    left |= static_cast<uint32_t>((result >> (8 * sizeof(T))) & 1) << lane;
  }
  Commit(warp, in.operand[0], out);
  if ((in.flags & kLeavesCarry) != 0) {
    CommitPredicate(warp, in.operand[kCarry], left);
  }
}

}  // namespace

void DecodeCarry(InstructionBuilder& b, Arithmetic op, Type type,
                 bool takes_carry, bool leaves_carry) {
  Instruction& in = b.out();
  const bool wide = TypeBytes(type) == 8;
  in.kind = wide ? InstructionClass::kInteger64 : InstructionClass::kInteger;
  in.issue_slots = wide ? 2 : 1;
  if (op == Arithmetic::kMad) {
    const auto part = b.TakeOneOf({".lo", ".hi"});
    if (!part.has_value()) return b.Fail("needs .lo or .hi");
    if (*part == 1) in.flags |= kHighPart;
  }
  if (takes_carry) in.flags |= kTakesCarry;
  if (leaves_carry) in.flags |= kLeavesCarry;
  in.mode = static_cast<uint8_t>(op);
  switch (type) {
    case Type::kU32:
      in.run = Run<uint32_t>;
      break;
    case Type::kS32:
      in.run = Run<int32_t>;
      break;
    case Type::kU64:
      in.run = Run<uint64_t>;
      break;
    case Type::kS64:
      in.run = Run<int64_t>;
      break;
    default:
      return b.Fail("has no form of that type");
  }
  b.Destination(0, 0, type);
  for (int i = 1; i <= SourceCount(op); ++i) b.Source(i, i, type);
  in.operand[kCarry] = b.Carry();
}

}  // namespace regatta::ptxsim

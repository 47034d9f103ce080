// atom and red. The lanes of a warp do theirs one after another, lowest first.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/memory_access.h"
#include "compiler/ptxsim/opcode_list.h"
#include "compiler/ptxsim/state_space.h"

namespace regatta::ptxsim {
namespace {

// Places of operands.
constexpr int kResult = 0;
constexpr int kAddress = 1;
constexpr int kFirst = 2;
constexpr int kSecond = 3;

enum class Operation : uint8_t {
  kAdd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompareExchange,
  kInc,
  kDec
};
constexpr std::initializer_list<std::string_view> kOperations = {
    ".add", ".min",  ".max", ".and", ".or",
    ".xor", ".exch", ".cas", ".inc", ".dec"};

template <typename T>
T IntegerResult(Operation operation, T old, T a, T b) {
  using U = std::make_unsigned_t<T>;
  switch (operation) {
    case Operation::kAdd:
      return static_cast<T>(U(old) + U(a));
    case Operation::kMin:
      return std::min(old, a);
    case Operation::kMax:
      return std::max(old, a);
    case Operation::kAnd:
      return old & a;
    case Operation::kOr:
      return old | a;
    case Operation::kXor:
      return old ^ a;
    case Operation::kExchange:
      return a;
    case Operation::kCompareExchange:
      return old == a ? b : old;
    case Operation::kInc:
      return old >= a ? 0 : old + 1;
    case Operation::kDec:
      return old == 0 || old > a ? a : old - 1;
  }
  return old;
}

uint32_t PackedAdd(Type type, uint32_t old, uint32_t a) {
  uint32_t result = 0;
  for (int shift = 0; shift < 8 * TypeBytes(type); shift += 16) {
    const auto x = static_cast<uint16_t>(old >> shift);
    const auto y = static_cast<uint16_t>(a >> shift);
    const bool bfloat = type == Type::kBF16 || type == Type::kBF16x2;
    const uint16_t sum = bfloat ? ToBF16(double{FromBF16(x)} + FromBF16(y))
                                : ToF16(double{FromF16(x)} + FromF16(y));
    result |= uint32_t{sum} << shift;
  }
  return result;
}

// The new value, as bits.
uint64_t NewValue(const Instruction& in, uint64_t old, uint64_t a, uint64_t b) {
  const auto operation = static_cast<Operation>(in.mode);
  switch (in.type) {
    case Type::kF32:
      return std::bit_cast<uint32_t>(
          std::bit_cast<float>(static_cast<uint32_t>(old)) +
          std::bit_cast<float>(static_cast<uint32_t>(a)));
    case Type::kF64:
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) +
                                     std::bit_cast<double>(a));
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBF16:
    case Type::kBF16x2:
      return PackedAdd(in.type, static_cast<uint32_t>(old),
                       static_cast<uint32_t>(a));
    case Type::kS32:
      return static_cast<uint32_t>(
          IntegerResult(operation, static_cast<int32_t>(old),
                        static_cast<int32_t>(a), static_cast<int32_t>(b)));
    case Type::kS64:
      return static_cast<uint64_t>(
          IntegerResult(operation, static_cast<int64_t>(old),
                        static_cast<int64_t>(a), static_cast<int64_t>(b)));
    case Type::kB16: {
      return IntegerResult<uint16_t>(operation, static_cast<uint16_t>(old),
                                     static_cast<uint16_t>(a),
                                     static_cast<uint16_t>(b));
    }
    default:
      if (TypeBytes(in.type) == 8) return IntegerResult(operation, old, a, b);
      return IntegerResult(operation, static_cast<uint32_t>(old),
                           static_cast<uint32_t>(a), static_cast<uint32_t>(b));
  }
}

void Run(const Instruction& in, WarpContext& warp) {
  const LaneAddresses address = AddressesOf(in, warp, kAddress);
  LanePointers at;
  const int bytes = TypeBytes(in.type);
  if (!AccessMemory(warp, in.space, warp.mask, address, bytes,
                    AccessKind::kStrongWrite, at)) {
    return;
  }
  const bool wide = bytes == 8;
  const auto read = [&](int place, int lane) -> uint64_t {
    return wide ? Cells64(warp, in.operand[place])[lane]
                : Cells32(warp, in.operand[place])[lane];
  };
  ForEachLane(warp.mask, [&](int lane) {
    uint64_t old = 0;
    std::memcpy(&old, at.pointer[lane], bytes);
    const uint64_t value =
        NewValue(in, old, read(kFirst, lane), read(kSecond, lane));
    std::memcpy(at.pointer[lane], &value, bytes);
    if (wide) {
      Cells64(warp, in.operand[kResult])[lane] = old;
    } else {
      Cells32(warp, in.operand[kResult])[lane] = static_cast<uint32_t>(old);
    }
  });
}

void Decode(InstructionBuilder& b, bool returns) {
  Instruction& in = b.out();
  in.kind = InstructionClass::kAtomic;
  b.TakeOneOf({".relaxed", ".acquire", ".release", ".acq_rel"});
  TakeScope(b);
  in.space = TakeSpace(b);
  const auto operation = b.TakeOneOf(kOperations);
  if (!operation.has_value()) return b.Fail("needs an operation");
  b.Take(".noftz");
  in.mode = static_cast<uint8_t>(*operation);
  in.type = b.TakeType();
  const auto what = static_cast<Operation>(*operation);
  if (IsFloat(in.type)
          ? what != Operation::kAdd
          : TypeBytes(in.type) < 4 && !(in.type == Type::kB16 &&
                                        what == Operation::kCompareExchange)) {
    return b.Fail("has no form of that type");
  }
  if (in.type == Type::kTF32) return b.Fail("has no form of that type");
  const bool compares = what == Operation::kCompareExchange;
  const size_t sources = compares ? 2 : 1;
  const size_t first = returns ? 1 : 0;
  b.RequireOperands(first + 1 + sources, first + 1 + sources);
  if (returns) {
    b.Destination(kResult, 0, in.type);
    in.late_first = kResult;
    in.late_count = 1;
  } else {
    in.operand[kResult] = b.Scratch(in.type);
  }
  b.Address(kAddress, first);
  b.Source(kFirst, first + 1, in.type);
  b.Source(kSecond, first + sources, in.type);
  in.run = Run;
}

void DecodeAtom(InstructionBuilder& b) { Decode(b, true); }
void DecodeRed(InstructionBuilder& b) { Decode(b, false); }

}  // namespace

OpcodeSpan AtomicOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {{"atom", DecodeAtom},
                                             {"red", DecodeRed}};
  return kEntries;
}

}  // namespace regatta::ptxsim

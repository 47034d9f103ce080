// Products and differences of packed small integers: dp4a, dp2a, sad,
// vabsdiff4.
#include <cstdint>
#include <cstdlib>

#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

constexpr uint8_t kSignedA = 1;
constexpr uint8_t kSignedB = 2;
constexpr uint8_t kHigh = 4;

int64_t Part(uint32_t bits, int bytes, int index, bool is_signed) {
  const uint32_t part = bits >> (8 * bytes * index);
  if (bytes == 1) return is_signed ? static_cast<int8_t>(part) : part & 255;
  return is_signed ? static_cast<int16_t>(part) : part & 65535;
}

// `a_bytes` wide parts of a times bytes of b.
template <int a_bytes>
struct Dot {
  explicit Dot(const Instruction& in) : mode(in.mode) {}
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    if ((mode & kHigh) != 0) b >>= 16;
    int64_t sum = c;
    for (int i = 0; i < 4 / a_bytes; ++i) {
      sum += Part(a, a_bytes, i, (mode & kSignedA) != 0) *
             Part(b, 1, i, (mode & kSignedB) != 0);
    }
    return static_cast<uint32_t>(sum);
  }
  uint8_t mode;
};

template <int a_bytes>
void DecodeDot(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  Instruction& in = b.out();
  in.kind = InstructionClass::kInteger;
  if (a_bytes == 2) {
    const auto half = b.TakeOneOf({".lo", ".hi"});
    if (!half.has_value()) return b.Fail("needs .lo or .hi");
    in.mode |= *half == 1 ? kHigh : 0;
  }
  const Type a = b.TakeType();
  const Type second = b.TakeType();
  if (TypeBytes(a) != 4 || TypeBytes(second) != 4) {
    return b.Fail("is for .u32 and .s32");
  }
  in.mode |= (IsSigned(a) ? kSignedA : 0) | (IsSigned(second) ? kSignedB : 0);
  in.run = MapLanes<Dot<a_bytes>, uint32_t, uint32_t, uint32_t, uint32_t>;
  b.Destination(0, 0, Type::kB32);
  for (int i = 1; i <= 3; ++i) b.Source(i, i, Type::kB32);
}

struct SumOfDifference : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  uint32_t operator()(T a, T b, uint32_t c) const {
    return c + static_cast<uint32_t>(std::llabs(int64_t{a} - int64_t{b}));
  }
};

void DecodeSad(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  const Type type = b.TakeType();
  b.out().kind = InstructionClass::kInteger;
  if (type == Type::kS32) {
    b.out().run =
        MapLanes<SumOfDifference, uint32_t, int32_t, int32_t, uint32_t>;
  } else if (type == Type::kU32) {
    b.out().run =
        MapLanes<SumOfDifference, uint32_t, uint32_t, uint32_t, uint32_t>;
  } else {
    return b.Fail("is for .u32 and .s32");
  }
  b.Destination(0, 0, type);
  for (int i = 1; i <= 3; ++i) b.Source(i, i, type);
}

// Each byte's absolute difference; .add sums them up with c.
struct ByteDifference {
  explicit ByteDifference(const Instruction& in)
      : is_signed((in.mode & kSignedA) != 0), sum((in.mode & kHigh) != 0) {}
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t result = sum ? c : 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t difference = static_cast<uint32_t>(
          std::llabs(Part(a, 1, i, is_signed) - Part(b, 1, i, is_signed)));
      result += sum ? difference : (difference & 255) << (8 * i);
    }
    return result;
  }
  bool is_signed, sum;
};

void DecodeByteDifference(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  const Type result = b.TakeType();
  const Type a = b.TakeType();
  const Type second = b.TakeType();
  if (TypeBytes(result) != 4 || TypeBytes(a) != 4 || second != a) {
    return b.Fail("is supported for operands of one type, .u32 or .s32");
  }
  b.out().kind = InstructionClass::kInteger;
  b.out().issue_slots = 4;
  b.out().mode = (IsSigned(a) ? kSignedA : 0) | (b.Take(".add") ? kHigh : 0);
  b.out().run =
      MapLanes<ByteDifference, uint32_t, uint32_t, uint32_t, uint32_t>;
  b.Destination(0, 0, Type::kB32);
  for (int i = 1; i <= 3; ++i) b.Source(i, i, Type::kB32);
}

}  // namespace

OpcodeSpan DotOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"dp4a", DecodeDot<1>},
      {"dp2a", DecodeDot<2>},
      {"sad", DecodeSad},
      {"vabsdiff4", DecodeByteDifference},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

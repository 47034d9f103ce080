// Transcendental and root instructions. The hardware approximates most of them
// within a few units in the last place; here each is the double result rounded
// once, so a kernel's output can differ from a GPU's by those units.
#include <bit>
#include <cmath>
#include <cstdint>

#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

enum class Function { kExp2, kLog2, kRcp, kRsqrt, kSqrt, kSin, kCos, kTanh };

template <Function function>
double Evaluate(double x) {
  switch (function) {
    case Function::kExp2:
      return std::exp2(x);
    case Function::kLog2:
      return std::log2(x);
    case Function::kRcp:
      return 1 / x;
    case Function::kRsqrt:
      return 1 / std::sqrt(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kSin:
      return std::sin(x);
    case Function::kCos:
      return std::cos(x);
    case Function::kTanh:
      return std::tanh(x);
  }
  return x;
}

template <Function function>
struct Float32 {
  explicit Float32(const Instruction& in)
      : flush(in.flush), rounding(in.rounding) {}
  float operator()(float x) const {
    const float result =
        ToF32(Evaluate<function>(flush ? FlushF32(x) : x), rounding);
    return flush ? FlushF32(result) : result;
  }
  bool flush;
  Rounding rounding;
};
template <Function function>
struct Float64 : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double x) const { return Evaluate<function>(x); }
};
// One number of 16 bits, or two.
template <Function function, bool bfloat>
struct Float16 : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T bits) const {
    uint32_t result = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
      const auto one = static_cast<uint16_t>(bits >> shift);
      const double x = bfloat ? FromBF16(one) : FromF16(one);
      const double y = Evaluate<function>(x);
      result |= uint32_t{bfloat ? ToBF16(y) : ToF16(y)} << shift;
    }
    return static_cast<T>(result);
  }
};

template <Function function>
Handler Pick(Type type) {
  switch (type) {
    case Type::kF32:
      return MapLanes<Float32<function>, float, float>;
    case Type::kF64:
      return MapLanes<Float64<function>, double, double>;
    case Type::kF16:
      return MapLanes<Float16<function, false>, uint16_t, uint16_t>;
    case Type::kF16x2:
      return MapLanes<Float16<function, false>, uint32_t, uint32_t>;
    case Type::kBF16:
      return MapLanes<Float16<function, true>, uint16_t, uint16_t>;
    case Type::kBF16x2:
      return MapLanes<Float16<function, true>, uint32_t, uint32_t>;
    default:
      return nullptr;
  }
}

template <Function function>
void Decode(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  Instruction& in = b.out();
  in.kind = InstructionClass::kSpecial;
  const bool fast = b.Take(".approx");
  const bool rounds = b.TakeRounding();
  b.TakeFlush();
  const Type type = b.TakeType();
  in.run = Pick<function>(type);
  if (in.run == nullptr) return b.Fail("has no form of that type");
  if (type == Type::kF64 && rounds && in.rounding != Rounding::kNearest) {
    return b.Fail("only round to nearest is supported");
  }
  // The exact ones are short programs around the approximate one.
  if (!fast && rounds) in.issue_slots = type == Type::kF64 ? 16 : 8;
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
}

// The sign of a on the magnitude of b.
struct CopySign : PlainOp {
  using PlainOp::PlainOp;
  template <typename T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

void DecodeCopySign(InstructionBuilder& b) {
  b.RequireOperands(3, 3);
  const Type type = b.TakeType();
  b.out().kind = InstructionClass::kInteger;
  if (type == Type::kF32) {
    b.out().run = MapLanes<CopySign, float, float, float>;
  } else if (type == Type::kF64) {
    b.out().run = MapLanes<CopySign, double, double, double>;
  } else {
    return b.Fail("has no form of that type");
  }
  b.Destination(0, 0, type);
  b.Source(1, 1, type);
  b.Source(2, 2, type);
}

}  // namespace

OpcodeSpan MathOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"ex2", Decode<Function::kExp2>},  {"lg2", Decode<Function::kLog2>},
      {"rcp", Decode<Function::kRcp>},   {"rsqrt", Decode<Function::kRsqrt>},
      {"sqrt", Decode<Function::kSqrt>}, {"sin", Decode<Function::kSin>},
      {"cos", Decode<Function::kCos>},   {"tanh", Decode<Function::kTanh>},
      {"copysign", DecodeCopySign},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim

// f16 and bf16 arithmetic, single and packed: computed in double, where sums
// and products of such numbers are exact, and rounded once.
#include <cmath>
#include <cstdint>

#include "compiler/ptxsim/arithmetic.h"
#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

constexpr uint8_t kNanWins = 1;  // Instruction::mode of min.NaN and max.NaN

// One number of the format.
template <bool bfloat>
struct Format {
  explicit Format(const Instruction& in)
      : flush(in.flush), saturate(in.saturate), relu(in.relu), mode(in.mode) {}

  double In(uint16_t bits) const {
    if (bfloat) return FromBF16(bits);
    return FromF16(flush ? FlushF16(bits) : bits);
  }
  uint16_t Out(double value) const {
    if (saturate) value = value > 0 ? (value < 1 ? value : 1) : 0;
    if (relu && !(value > 0) && !std::isnan(value)) value = 0;
    if (bfloat) return ToBF16(value);
    const uint16_t bits = ToF16(value);
    return flush ? FlushF16(bits) : bits;
  }
  double Extreme(double a, double b, bool greater) const {
    if (std::isnan(a) || std::isnan(b)) {
      if (mode == kNanWins) return std::nan("");
      return std::isnan(a) ? b : a;
    }
    if (a == b) return std::signbit(a) == greater ? b : a;
    return (a > b) == greater ? a : b;
  }
  bool flush, saturate, relu;
  uint8_t mode;
};

template <Arithmetic op, typename F>
uint16_t Compute(const F& format, uint16_t a, uint16_t b, uint16_t c) {
  const double x = format.In(a);
  const double y = format.In(b);
  switch (op) {
    case Arithmetic::kAdd:
      return format.Out(x + y);
    case Arithmetic::kSub:
      return format.Out(x - y);
    case Arithmetic::kMul:
      return format.Out(x * y);
    case Arithmetic::kMin:
      return format.Out(format.Extreme(x, y, false));
    case Arithmetic::kMax:
      return format.Out(format.Extreme(x, y, true));
    case Arithmetic::kFma:
      return format.Out(OddSum(x * y, format.In(c)));
    case Arithmetic::kAbs:
      return a & 0x7FFF;
    case Arithmetic::kNeg:
      return a ^ 0x8000;
    default:
      return 0;
  }
}

// T is uint16_t for one number, uint32_t for two.
template <Arithmetic op, bool bfloat>
struct Op : Format<bfloat> {
  using Format<bfloat>::Format;
  template <typename T>
  T Each(T a, T b, T c) const {
    uint32_t result = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
      result |= uint32_t{Compute<op>(*this, static_cast<uint16_t>(a >> shift),
                                     static_cast<uint16_t>(b >> shift),
                                     static_cast<uint16_t>(c >> shift))}
                << shift;
    }
    return static_cast<T>(result);
  }
  template <typename T>
  T operator()(T a) const {
    return Each<T>(a, 0, 0);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return Each<T>(a, b, 0);
  }
  template <typename T>
  T operator()(T a, T b, T c) const {
    return Each<T>(a, b, c);
  }
};

template <Arithmetic op, bool bfloat, typename T>
Handler ForCount() {
  if constexpr (SourceCount(op) == 1) return MapLanes<Op<op, bfloat>, T, T>;
  if constexpr (SourceCount(op) == 2) return MapLanes<Op<op, bfloat>, T, T, T>;
  if constexpr (SourceCount(op) == 3) {
    return MapLanes<Op<op, bfloat>, T, T, T, T>;
  }
}

template <Arithmetic op>
Handler ForType(Type type) {
  switch (type) {
    case Type::kF16:
      return ForCount<op, false, uint16_t>();
    case Type::kF16x2:
      return ForCount<op, false, uint32_t>();
    case Type::kBF16:
      return ForCount<op, true, uint16_t>();
    default:
      return ForCount<op, true, uint32_t>();
  }
}

Handler Pick(Arithmetic op, Type type) {
  switch (op) {
    case Arithmetic::kAdd:
      return ForType<Arithmetic::kAdd>(type);
    case Arithmetic::kSub:
      return ForType<Arithmetic::kSub>(type);
    case Arithmetic::kMul:
      return ForType<Arithmetic::kMul>(type);
    case Arithmetic::kMin:
      return ForType<Arithmetic::kMin>(type);
    case Arithmetic::kMax:
      return ForType<Arithmetic::kMax>(type);
    case Arithmetic::kAbs:
      return ForType<Arithmetic::kAbs>(type);
    case Arithmetic::kNeg:
      return ForType<Arithmetic::kNeg>(type);
    case Arithmetic::kFma:
      return ForType<Arithmetic::kFma>(type);
    default:
      return nullptr;
  }
}

}  // namespace

void DecodeFloat16(InstructionBuilder& b, Arithmetic op, Type type) {
  Instruction& in = b.out();
  in.kind = InstructionClass::kFloat16;
  b.TakeRounding();
  if (in.rounding != Rounding::kNearest) {
    return b.Fail("only round to nearest is supported");
  }
  b.TakeFlush();
  in.saturate = b.Take(".sat");
  in.relu = b.Take(".relu");
  if (op == Arithmetic::kMin || op == Arithmetic::kMax) {
    in.mode = b.Take(".NaN") ? kNanWins : 0;
  }
  in.run = Pick(op, type);
  if (in.run == nullptr) return b.Fail("has no 16-bit form");
  b.Destination(0, 0, type);
  for (int i = 1; i <= SourceCount(op); ++i) b.Source(i, i, type);
}

}  // namespace regatta::ptxsim

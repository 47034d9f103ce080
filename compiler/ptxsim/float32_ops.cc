// fp32 arithmetic. .approx and .full forms are computed as exactly as the
// others.
#include <bit>
#include <cmath>

#include "compiler/ptxsim/arithmetic.h"
#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/fma_lanes.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

// What .ftz, .sat and the rounding mode do around an operation.
struct Variant {
  explicit Variant(const Instruction& in)
      : flush(in.flush), saturate(in.saturate), rounding(in.rounding) {}
  float In(float value) const { return flush ? FlushF32(value) : value; }
  float Out(float value) const {
    if (flush) value = FlushF32(value);
    return saturate ? SaturateF32(value) : value;
  }
  // Of a sum of two exact doubles.
  float Round(double a, double b) const {
    return Out(ToF32(OddSum(a, b), rounding));
  }
  bool flush, saturate;
  Rounding rounding;
};

struct PlainAdd : PlainOp {
  using PlainOp::PlainOp;
  float operator()(float a, float b) const { return a + b; }
};
struct PlainSub : PlainOp {
  using PlainOp::PlainOp;
  float operator()(float a, float b) const { return a - b; }
};
struct PlainMul : PlainOp {
  using PlainOp::PlainOp;
  float operator()(float a, float b) const { return a * b; }
};

struct Add : Variant {
  using Variant::Variant;
  float operator()(float a, float b) const { return Round(In(a), In(b)); }
};
struct Sub : Variant {
  using Variant::Variant;
  float operator()(float a, float b) const { return Round(In(a), -In(b)); }
};
struct Mul : Variant {
  using Variant::Variant;
  float operator()(float a, float b) const {
    return Out(ToF32(double{In(a)} * double{In(b)}, rounding));
  }
};
struct Fma : Variant {
  using Variant::Variant;
  float operator()(float a, float b, float c) const {
    return Round(double{In(a)} * double{In(b)}, In(c));
  }
};
struct Div : Variant {
  using Variant::Variant;
  float operator()(float a, float b) const { return Out(In(a) / In(b)); }
};
struct Abs : Variant {
  using Variant::Variant;
  float operator()(float a) const { return std::fabs(In(a)); }
};
struct Neg : Variant {
  using Variant::Variant;
  float operator()(float a) const { return -In(a); }
};

// NaN loses against a number unless .NaN (mode 1) is given; -0 is below +0.
template <bool greater>
struct Extreme : Variant {
  explicit Extreme(const Instruction& in) : Variant(in), nan(in.mode == 1) {}
  float operator()(float a, float b) const {
    a = In(a);
    b = In(b);
    if (std::isnan(a) || std::isnan(b)) {
      if (nan || (std::isnan(a) && std::isnan(b))) {
        return std::bit_cast<float>(0x7FFFFFFFu);
      }
      return std::isnan(a) ? b : a;
    }
    if (a == b) return std::signbit(a) == greater ? b : a;
    return (a > b) == greater ? a : b;
  }
  float operator()(float a, float b, float c) const {
    return (*this)((*this)(a, b), c);
  }
  bool nan;
};

void RunPlainFma(const Instruction& in, WarpContext& warp) {
  alignas(64) uint32_t out[kLanes];
  FmaLanes(Cells32(warp, in.operand[1]), Cells32(warp, in.operand[2]),
           Cells32(warp, in.operand[3]), out);
  Commit(warp, in.operand[0], out);
}

template <typename Op>
constexpr Handler kUnary = MapLanes<Op, float, float>;
template <typename Op>
constexpr Handler kBinary = MapLanes<Op, float, float, float>;
template <typename Op>
constexpr Handler kTernary = MapLanes<Op, float, float, float, float>;

Handler Pick(Arithmetic op, bool plain) {
  switch (op) {
    case Arithmetic::kAdd:
      return plain ? kBinary<PlainAdd> : kBinary<Add>;
    case Arithmetic::kSub:
      return plain ? kBinary<PlainSub> : kBinary<Sub>;
    case Arithmetic::kMul:
      return plain ? kBinary<PlainMul> : kBinary<Mul>;
    case Arithmetic::kDiv:
      return kBinary<Div>;
    case Arithmetic::kMin:
      return kBinary<Extreme<false>>;
    case Arithmetic::kMax:
      return kBinary<Extreme<true>>;
    case Arithmetic::kAbs:
      return kUnary<Abs>;
    case Arithmetic::kNeg:
      return kUnary<Neg>;
    case Arithmetic::kMad:
    case Arithmetic::kFma:
      return plain ? RunPlainFma : kTernary<Fma>;
    default:
      return nullptr;
  }
}

}  // namespace

void DecodeFloat32(InstructionBuilder& b, Arithmetic op) {
  Instruction& in = b.out();
  const bool fused = op == Arithmetic::kFma || op == Arithmetic::kMad;
  in.kind = fused ? InstructionClass::kFma : InstructionClass::kFloat32;
  const bool rounds = b.TakeRounding();
  b.TakeFlush();
  in.saturate = b.Take(".sat");
  if (op == Arithmetic::kDiv) {
    const bool fast = b.TakeOneOf({".approx", ".full"}).has_value();
    in.issue_slots = fast ? 3 : 10;
    if (rounds && in.rounding != Rounding::kNearest) {
      return b.Fail("only round to nearest is supported");
    }
  }
  if (op == Arithmetic::kMin || op == Arithmetic::kMax) {
    in.mode = b.Take(".NaN") ? 1 : 0;
  }
  const bool plain =
      !in.flush && !in.saturate && in.rounding == Rounding::kNearest;
  in.run = Pick(op, plain);
  if (in.run == nullptr) return b.Fail("has no .f32 form");
  b.Destination(0, 0, Type::kF32);
  for (int i = 1; i <= SourceCount(op); ++i) b.Source(i, i, Type::kF32);
}

}  // namespace regatta::ptxsim

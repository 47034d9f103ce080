// fp64 arithmetic, to nearest only.
#include <bit>
#include <cmath>

#include "compiler/ptxsim/arithmetic.h"
#include "compiler/ptxsim/lanes.h"

namespace regatta::ptxsim {
namespace {

struct Add : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b) const { return a + b; }
};
struct Sub : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b) const { return a - b; }
};
struct Mul : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b) const { return a * b; }
};
struct Div : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b) const { return a / b; }
};
struct Min : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b) const { return std::fmin(a, b); }
};
struct Max : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b) const { return std::fmax(a, b); }
};
struct Abs : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a) const { return std::fabs(a); }
};
struct Neg : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a) const { return -a; }
};
struct Fma : PlainOp {
  using PlainOp::PlainOp;
  double operator()(double a, double b, double c) const {
    return std::fma(a, b, c);
  }
};

template <typename Op>
constexpr Handler kUnary = MapLanes<Op, double, double>;
template <typename Op>
constexpr Handler kBinary = MapLanes<Op, double, double, double>;

Handler Pick(Arithmetic op) {
  switch (op) {
    case Arithmetic::kAdd:
      return kBinary<Add>;
    case Arithmetic::kSub:
      return kBinary<Sub>;
    case Arithmetic::kMul:
      return kBinary<Mul>;
    case Arithmetic::kDiv:
      return kBinary<Div>;
    case Arithmetic::kMin:
      return kBinary<Min>;
    case Arithmetic::kMax:
      return kBinary<Max>;
    case Arithmetic::kAbs:
      return kUnary<Abs>;
    case Arithmetic::kNeg:
      return kUnary<Neg>;
    case Arithmetic::kMad:
    case Arithmetic::kFma:
      return MapLanes<Fma, double, double, double, double>;
    default:
      return nullptr;
  }
}

}  // namespace

void DecodeFloat64(InstructionBuilder& b, Arithmetic op) {
  Instruction& in = b.out();
  in.kind = InstructionClass::kFloat64;
  in.issue_slots = op == Arithmetic::kDiv ? 12 : 1;
  b.TakeRounding();
  if (in.rounding != Rounding::kNearest) {
    return b.Fail("only round to nearest is supported");
  }
  in.run = Pick(op);
  if (in.run == nullptr) return b.Fail("has no .f64 form");
  b.Destination(0, 0, Type::kF64);
  for (int i = 1; i <= SourceCount(op); ++i) b.Source(i, i, Type::kF64);
}

}  // namespace regatta::ptxsim

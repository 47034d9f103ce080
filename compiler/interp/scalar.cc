#include "compiler/interp/scalar.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "compiler/module/half.h"

namespace regatta {
namespace {

double Wrap(int64_t value) { return static_cast<int32_t>(value); }

double IntegerBinary(BinaryOp op, double left, double right) {
  const int64_t a = static_cast<int64_t>(left);
  const int64_t b = static_cast<int64_t>(right);
  switch (op) {
    case BinaryOp::kAdd:
      return Wrap(a + b);
    case BinaryOp::kSub:
      return Wrap(a - b);
    case BinaryOp::kMul:
      return Wrap(a * b);
    case BinaryOp::kMax:
      return a > b ? a : b;
    case BinaryOp::kMin:
      return a < b ? a : b;
    case BinaryOp::kLess:
      return a < b;
    case BinaryOp::kLessEqual:
      return a <= b;
    case BinaryOp::kEqual:
      return a == b;
    case BinaryOp::kDiv:
      break;
  }
  CHECK(false) << "integers are not divided";
}

BinaryOp StepOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return BinaryOp::kAdd;
    case Reduction::kProd:
      return BinaryOp::kMul;
    case Reduction::kMax:
      return BinaryOp::kMax;
    case Reduction::kMin:
      return BinaryOp::kMin;
    case Reduction::kNone:
      break;
  }
  CHECK(false) << "no reduction";
}

// One expression at one point.
class PointEvaluator {
 public:
  PointEvaluator(const Workload& workload, const std::vector<int64_t>& values,
                 ElementSource& source)
      : workload_(workload), values_(values), source_(source) {}

  double Evaluate(const Expr& expr) const {
    const auto operand = [&](size_t i) { return Evaluate(*expr.operands[i]); };
    switch (expr.kind) {
      case Expr::Kind::kConst:
        return expr.constant;
      case Expr::Kind::kIndex:
        return static_cast<double>(At(expr.subscripts[0]));
      case Expr::Kind::kAccess:
        return Access(expr);
      case Expr::Kind::kUnary:
        return ApplyUnary(expr.unary, operand(0), expr.dtype);
      case Expr::Kind::kBinary:
        return ApplyBinary(expr.binary, operand(0), operand(1),
                           expr.operands[0]->dtype);
      case Expr::Kind::kSelect:
        return operand(0) != 0 ? operand(1) : operand(2);
      case Expr::Kind::kCast:
        return CastToDType(operand(0), expr.operands[0]->dtype, expr.dtype);
    }
    CHECK(false) << "kind " << static_cast<int>(expr.kind);
  }

 private:
  int64_t At(const Affine& form) const {
    int64_t value = form.constant();
    for (const Affine::Term& term : form.terms()) {
      value += term.coeff * values_[term.var];
    }
    return value;
  }

  double Access(const Expr& expr) const {
    const std::vector<int64_t>& shape = workload_.tensors[expr.tensor].shape;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size();) {
      int64_t at = At(expr.subscripts[d]), extent = shape[d];
      // Dimensions that carry into this one are part of one position.
      for (++d; d < shape.size() && !expr.carries.empty() && expr.carries[d];
           ++d) {
        at = at * shape[d] + At(expr.subscripts[d]);
        extent *= shape[d];
      }
      if (at < 0 || at >= extent) {
        CHECK(expr.pad_value.has_value()) << "an access left its tensor";
        return *expr.pad_value;
      }
      offset = offset * extent + at;
    }
    return source_.Read(expr.tensor, offset);
  }

  const Workload& workload_;
  const std::vector<int64_t>& values_;
  ElementSource& source_;
};

}  // namespace

double ApplyUnary(UnaryOp op, double a, DType type) {
  switch (op) {
    case UnaryOp::kNeg:
      return IsFloat(type) ? -a : Wrap(-static_cast<int64_t>(a));
    case UnaryOp::kAbs:
      return IsFloat(type) ? std::fabs(a)
                           : Wrap(std::abs(static_cast<int64_t>(a)));
    case UnaryOp::kExp:
      return std::exp(a);
    case UnaryOp::kLog:
      return std::log(a);
    case UnaryOp::kSqrt:
      return std::sqrt(a);
    case UnaryOp::kRsqrt:
      return 1 / std::sqrt(a);
    case UnaryOp::kTanh:
      return std::tanh(a);
    case UnaryOp::kSigmoid:
      return 1 / (1 + std::exp(-a));
    case UnaryOp::kErf:
      return std::erf(a);
    case UnaryOp::kFloor:
      return std::floor(a);
    case UnaryOp::kRound:
      return std::nearbyint(a);
  }
  CHECK(false) << "unary " << static_cast<int>(op);
}

double ApplyBinary(BinaryOp op, double a, double b, DType type) {
  if (!IsFloat(type)) return IntegerBinary(op, a, b);
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMax:
      return std::isnan(a) || a > b ? a : b;
    case BinaryOp::kMin:
      return std::isnan(a) || a < b ? a : b;
    case BinaryOp::kLess:
      return a < b;
    case BinaryOp::kLessEqual:
      return a <= b;
    case BinaryOp::kEqual:
      return a == b;
  }
  CHECK(false) << "binary " << static_cast<int>(op);
}

double ReductionIdentity(Reduction reduction, DType accumulator) {
  const bool is_float = IsFloat(accumulator);
  const double infinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::kSum:
      return 0;
    case Reduction::kProd:
      return 1;
    case Reduction::kMax:
      return is_float ? -infinity : std::numeric_limits<int32_t>::min();
    case Reduction::kMin:
      return is_float ? infinity : std::numeric_limits<int32_t>::max();
    case Reduction::kNone:
      break;
  }
  CHECK(false) << "no reduction";
}

double ReduceStep(Reduction reduction, double running, double value,
                  DType accumulator) {
  return ApplyBinary(StepOf(reduction), running, value, accumulator);
}

bool NextPoint(const Workload& workload, const std::vector<int>& indices,
               std::vector<int64_t>& index_values) {
  for (size_t d = indices.size(); d-- > 0;) {
    const int id = indices[d];
    if (++index_values[id] < workload.indices[id].extent) return true;
    index_values[id] = 0;
  }
  return false;
}

void SetCoordinates(const Workload& workload, const Stage& stage,
                    int64_t offset, std::vector<int64_t>& index_values) {
  for (size_t d = stage.indices.size(); d-- > 0;) {
    const int64_t extent = workload.indices[stage.indices[d]].extent;
    index_values[stage.indices[d]] = offset % extent;
    offset /= extent;
  }
}

double EvaluateElement(const Workload& workload, const Stage& stage,
                       std::vector<int64_t>& index_values,
                       ElementSource& source) {
  const PointEvaluator point(workload, index_values, source);
  double value = 0;
  if (stage.reduction == Reduction::kNone) {
    value = point.Evaluate(*stage.value);
  } else {
    value = ReductionIdentity(stage.reduction, stage.accumulator);
    for (int id : stage.reduce_indices) index_values[id] = 0;
    do {
      value = ReduceStep(stage.reduction, value, point.Evaluate(*stage.value),
                         stage.accumulator);
    } while (NextPoint(workload, stage.reduce_indices, index_values));
  }
  return RoundToDType(value, workload.tensors[stage.tensor].dtype);
}

}  // namespace regatta

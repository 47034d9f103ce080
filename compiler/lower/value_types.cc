#include "compiler/lower/value_types.h"

namespace regatta::loop {
namespace {

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLess || op == BinaryOp::kLessEqual ||
         op == BinaryOp::kEqual;
}

// Functions that only floats have.
bool FloatOnly(UnaryOp op) {
  return op != UnaryOp::kNeg && op != UnaryOp::kAbs;
}

size_t OperandCount(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kConst:
    case Value::Kind::kIndex:
    case Value::Kind::kLoad:
      return 0;
    case Value::Kind::kUnary:
    case Value::Kind::kCast:
      return 1;
    case Value::Kind::kBinary:
    case Value::Kind::kProducts:
      return 2;
    case Value::Kind::kSelect:
      return 3;
  }
  return 0;
}

}  // namespace

std::string TypeError(const Value& value) {
  if (value.operands.size() != OperandCount(value)) return "operand count";
  const auto type = [&](int i) { return value.operands[i]->dtype; };
  switch (value.kind) {
    case Value::Kind::kUnary:
      if (value.dtype != type(0) || type(0) == DType::kBool) return "type";
      if (FloatOnly(value.unary) && !IsFloat(type(0))) return "integer type";
      return "";
    case Value::Kind::kBinary:
      if (type(1) != type(0)) return "unequal types";
      if (value.dtype !=
          (IsComparison(value.binary) ? DType::kBool : type(0))) {
        return "type";
      }
      return "";
    case Value::Kind::kSelect:
      if (type(0) != DType::kBool) return "condition type";
      if (type(1) != value.dtype || type(2) != value.dtype) {
        return "unequal types";
      }
      return "";
    case Value::Kind::kProducts: {
      const bool integers = type(0) == DType::kI8 && type(1) == DType::kI8 &&
                            value.dtype == DType::kI32;
      const bool floats = type(0) == DType::kBF16 && type(1) == DType::kBF16 &&
                          value.dtype == DType::kF32 && !value.block.unsigned_a;
      return integers || floats ? "" : "types of products";
    }
    default:
      return "";
  }
}

}  // namespace regatta::loop

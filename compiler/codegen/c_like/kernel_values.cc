// Arithmetic of the kernel emitter. Every text that is returned is a name, a
// number, a call or in parentheses, so that it can be an operand.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/codegen/c_like/kernel_emitter.h"
#include "compiler/module/half.h"

namespace regatta::c_like {
namespace {

// Longer texts get a name: compilers limit how deep expressions nest.
constexpr size_t kMaxTextBytes = 160;

bool IsSimple(const std::string& text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '.') return false;
  }
  return true;
}

}  // namespace

std::string KernelEmitter::Named(const std::string& text,
                                 const std::string& type) {
  if (IsSimple(text)) return text;
  std::string name = absl::StrCat("x", next_name_++);
  Line(absl::StrCat("const ", type, " ", name, " = ", text, ";"));
  return name;
}

KernelEmitter::Val KernelEmitter::Settle(Val value, DType dtype) {
  for (std::string& text : value) {
    if (text.size() > kMaxTextBytes) {
      text = Named(text, dialect_.RegisterType(dtype));
    }
  }
  return value;
}

void KernelEmitter::Broadcast(Val& value, DType dtype, size_t lanes) {
  if (value.size() == lanes) return;
  CHECK(value.size() == 1) << value.size() << " lanes of " << lanes;
  value = Val(lanes, Named(value[0], dialect_.RegisterType(dtype)));
}

KernelEmitter::Val KernelEmitter::Emit(const loop::Value& value) {
  switch (value.kind) {
    case loop::Value::Kind::kConst:
      return {Literal(value.constant, value.dtype)};
    case loop::Value::Kind::kIndex: {
      const Form form = Resolve(value.offset);
      Val index;
      for (int i = 0; i < (form.lane == 0 ? 1 : lanes_.count); ++i) {
        index.push_back(absl::StrCat("((", dialect_.RegisterType(value.dtype),
                                     ")(int)(", Text(form, i), "))"));
      }
      return index;
    }
    case loop::Value::Kind::kLoad:
      return Load(value, /*raw=*/false);
    case loop::Value::Kind::kUnary:
      return Settle(EmitUnary(value), value.dtype);
    case loop::Value::Kind::kBinary:
      return Settle(EmitBinary(value), value.dtype);
    case loop::Value::Kind::kSelect:
      return Settle(EmitSelect(value), value.dtype);
    case loop::Value::Kind::kCast:
      return Settle(EmitCast(value), value.dtype);
    case loop::Value::Kind::kProducts:
      break;  // no target of these languages has such instructions
  }
  CHECK(false) << "value kind " << static_cast<int>(value.kind);
  return {};
}

KernelEmitter::Val KernelEmitter::EmitUnary(const loop::Value& value) {
  Val x = Emit(*value.operands[0]);
  for (std::string& text : x) {
    text = Rounded(Unary(value.unary, text, value.dtype), value.dtype);
  }
  return x;
}

KernelEmitter::Val KernelEmitter::EmitBinary(const loop::Value& value) {
  const DType dtype = value.operands[0]->dtype;
  Val a = Emit(*value.operands[0]);
  Val b = Emit(*value.operands[1]);
  const size_t lanes = std::max(a.size(), b.size());
  Broadcast(a, dtype, lanes);
  Broadcast(b, dtype, lanes);
  for (size_t i = 0; i < lanes; ++i) {
    a[i] = Rounded(Binary(value.binary, a[i], b[i], dtype), value.dtype);
  }
  return a;
}

KernelEmitter::Val KernelEmitter::EmitSelect(const loop::Value& value) {
  Val condition = Emit(*value.operands[0]);
  Val a = Emit(*value.operands[1]);
  Val b = Emit(*value.operands[2]);
  const size_t lanes = std::max({condition.size(), a.size(), b.size()});
  Broadcast(condition, DType::kBool, lanes);
  Broadcast(a, value.dtype, lanes);
  Broadcast(b, value.dtype, lanes);
  for (size_t i = 0; i < lanes; ++i) {
    a[i] = absl::StrCat("(", condition[i], " ? ", a[i], " : ", b[i], ")");
  }
  return a;
}

KernelEmitter::Val KernelEmitter::EmitCast(const loop::Value& value) {
  const DType from = value.operands[0]->dtype;
  Val x = Emit(*value.operands[0]);
  for (std::string& text : x) text = CastText(text, from, value.dtype);
  return x;
}

std::string KernelEmitter::Rounded(const std::string& text, DType dtype) const {
  const bool kept_wide =
      dtype == DType::kBF16 || (dtype == DType::kF16 && !dialect_.has_half());
  return kept_wide ? FromStorage(dtype, ToStorage(dtype, text)) : text;
}

std::string KernelEmitter::CastText(const std::string& x, DType from,
                                    DType to) const {
  if (to == DType::kBool) return absl::StrCat("(", x, " != 0)");
  const std::string type = dialect_.RegisterType(to);
  const bool wide = from == DType::kF64;
  switch (to) {
    case DType::kF64:
    case DType::kF32:
      return from == to ? x : absl::StrCat("((", type, ")", x, ")");
    case DType::kF16:
    case DType::kBF16: {
      // Whatever the source, the value must be one that the type has.
      const std::string f32 = from == DType::kF64 || !IsFloat(from)
                                  ? absl::StrCat("(float)", x)
                                  : x;
      return FromStorage(to, ToStorage(to, f32));
    }
    case DType::kI32:
      if (!IsFloat(from)) return x;
      return absl::StrCat(wide ? "RG@to_i32_f64(" : "RG@to_i32(", x, ")");
    case DType::kI8:
      if (!IsFloat(from)) return absl::StrCat("((int)", ToStorage(to, x), ")");
      return absl::StrCat(wide ? "RG@to_i8_f64(" : "RG@to_i8(", x, ")");
    case DType::kBool:
      break;
  }
  CHECK(false) << "cast to " << static_cast<int>(to);
  return "";
}

std::string KernelEmitter::Literal(double number, DType dtype) const {
  if (!IsFloat(dtype)) {
    const auto whole = static_cast<int64_t>(number);
    if (whole == std::numeric_limits<int32_t>::min()) {
      return "(-2147483647 - 1)";
    }
    return whole < 0 ? absl::StrCat("(", whole, ")") : absl::StrCat(whole);
  }
  // Narrow floats are kept in f32.
  const DType kept = dtype == DType::kF64 ? dtype : DType::kF32;
  if (std::isnan(number)) return dialect_.NotANumber(kept);
  number = RoundToDType(number, dtype);
  if (std::isinf(number)) {
    const std::string infinity = dialect_.Infinity(kept);
    return number > 0 ? infinity : absl::StrCat("(-", infinity, ")");
  }
  char digits[40];
  std::snprintf(digits, sizeof(digits), kept == DType::kF64 ? "%.17g" : "%.9g",
                std::fabs(number));
  std::string text = digits;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (kept == DType::kF32) text += "f";
  if (std::signbit(number)) text = absl::StrCat("(-", text, ")");
  return dtype == DType::kF16 && dialect_.has_half()
             ? absl::StrCat("((half)", text, ")")
             : text;
}

std::string KernelEmitter::RawLiteral(double number, DType dtype) const {
  if (dtype == DType::kF16 && !dialect_.has_half()) {
    return absl::StrCat(DoubleToF16Bits(number));
  }
  if (dtype == DType::kBF16) return absl::StrCat(DoubleToBF16Bits(number));
  return Literal(number, dtype);
}

std::string KernelEmitter::Unary(UnaryOp op, const std::string& x,
                                 DType dtype) const {
  if (!IsFloat(dtype)) {
    const std::string negated =
        absl::StrCat("(int)(0u - (unsigned int)", x, ")");
    if (op == UnaryOp::kNeg) return absl::StrCat("(", negated, ")");
    CHECK(op == UnaryOp::kAbs) << "integer function " << static_cast<int>(op);
    return absl::StrCat("(", x, " < 0 ? ", negated, " : ", x, ")");
  }
  const auto call = [&](std::string_view name, const std::string& argument) {
    return absl::StrCat(
        dialect_.Function(name, dtype == DType::kF64 ? dtype : DType::kF32),
        "(", argument, ")");
  };
  const std::string one = Literal(1, dtype);
  switch (op) {
    case UnaryOp::kNeg:
      return absl::StrCat("(-", x, ")");
    case UnaryOp::kAbs:
      return call("fabs", x);
    case UnaryOp::kExp:
      return call("exp", x);
    case UnaryOp::kLog:
      return call("log", x);
    case UnaryOp::kSqrt:
      return call("sqrt", x);
    case UnaryOp::kRsqrt:
      return absl::StrCat("(", one, " / ", call("sqrt", x), ")");
    case UnaryOp::kTanh:
      return call("tanh", x);
    case UnaryOp::kSigmoid:
      return absl::StrCat("(", one, " / (", one, " + ",
                          call("exp", absl::StrCat("-", x)), "))");
    case UnaryOp::kErf:
      return call("erf", x);
    case UnaryOp::kFloor:
      return call("floor", x);
    case UnaryOp::kRound:
      return call("rint", x);  // ties to even
  }
  CHECK(false) << "unary " << static_cast<int>(op);
  return "";
}

std::string KernelEmitter::Binary(BinaryOp op, const std::string& a,
                                  const std::string& b, DType dtype) const {
  const bool is_float = IsFloat(dtype);
  const auto infix = [&](std::string_view symbol) {
    // Integers wrap around: in unsigned arithmetic, which C lets do so.
    if (!is_float && symbol.find_first_of("+-*") == 0) {
      const std::string wrapped =
          absl::StrCat("(int)((unsigned int)", a, " ", std::string(symbol),
                       " (unsigned int)", b, ")");
      return absl::StrCat(
          "(",
          dtype == DType::kI8 ? CastText(wrapped, DType::kI32, dtype) : wrapped,
          ")");
    }
    return absl::StrCat("(", a, " ", std::string(symbol), " ", b, ")");
  };
  const auto call = [&](std::string_view name) {
    return absl::StrCat("RG@", std::string(name),
                        dtype == DType::kF64 ? "_f64(" : "(", a, ", ", b, ")");
  };
  switch (op) {
    case BinaryOp::kAdd:
      return infix("+");
    case BinaryOp::kSub:
      return infix("-");
    case BinaryOp::kMul:
      return infix("*");
    case BinaryOp::kDiv:
      return is_float ? infix("/") : call("div");
    case BinaryOp::kMax:
      if (is_float) return call("max");
      return absl::StrCat("(", a, " > ", b, " ? ", a, " : ", b, ")");
    case BinaryOp::kMin:
      if (is_float) return call("min");
      return absl::StrCat("(", a, " < ", b, " ? ", a, " : ", b, ")");
    case BinaryOp::kLess:
      return infix("<");
    case BinaryOp::kLessEqual:
      return infix("<=");
    case BinaryOp::kEqual:
      return infix("==");
  }
  CHECK(false) << "binary " << static_cast<int>(op);
  return "";
}

std::string KernelEmitter::Combine(Reduction reduction, const std::string& a,
                                   const std::string& b, DType dtype) const {
  switch (reduction) {
    case Reduction::kNone:
      return b;
    case Reduction::kSum:
      return Binary(BinaryOp::kAdd, a, b, dtype);
    case Reduction::kProd:
      return Binary(BinaryOp::kMul, a, b, dtype);
    case Reduction::kMax:
      return Binary(BinaryOp::kMax, a, b, dtype);
    case Reduction::kMin:
      return Binary(BinaryOp::kMin, a, b, dtype);
  }
  CHECK(false) << "reduction " << static_cast<int>(reduction);
  return "";
}

}  // namespace regatta::c_like

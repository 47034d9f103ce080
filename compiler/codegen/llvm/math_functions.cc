#include "compiler/codegen/llvm/math_functions.h"

#include <initializer_list>
#include <limits>

#include "base/check.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

namespace regatta::cpu {
namespace {

using llvm::Value;

// Writes f32 formulas briefly. Every operation may be contracted into a fused
// multiply-add and none may be reassociated.
class F32 {
 public:
  F32(Builder& b, const Traits& traits, llvm::Type* type)
      : b_(b), traits_(traits), type_(type) {}

  llvm::Type* IntType() const { return WithLanesOf(b_.getInt32Ty(), type_); }
  Value* C(double constant) const {
    return llvm::ConstantFP::get(type_, constant);
  }
  Value* I(uint32_t constant) const {
    return llvm::ConstantInt::get(IntType(), constant);
  }
  Value* Fma(Value* x, Value* y, Value* z) const {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {type_}, {x, y, z});
  }
  Value* AsInt(Value* x) const { return b_.CreateBitCast(x, IntType()); }
  Value* AsFloat(Value* x) const { return b_.CreateBitCast(x, type_); }
  // c0*x^n + c1*x^(n-1) + ... + cn
  Value* Poly(Value* x, std::initializer_list<double> coefficients) const {
    auto it = coefficients.begin();
    Value* sum = C(*it++);
    for (; it != coefficients.end(); ++it) sum = Fma(sum, x, C(*it));
    return sum;
  }
  // NaN stays NaN: comparisons with it are false.
  Value* Clamp(Value* x, double low, double high) const {
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, C(low)), C(low), x);
    return b_.CreateSelect(b_.CreateFCmpOGT(x, C(high)), C(high), x);
  }
  Value* Abs(Value* x) const {
    return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  }
  Value* CopySign(Value* magnitude, Value* sign) const {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }

  // x * 2^n for a whole number n, rounded once; null where the target has no
  // instruction for it.
  Value* Scale(Value* x, Value* n) const;
  Value* Exp(Value* x) const;
  Value* Log(Value* x) const;
  Value* Tanh(Value* x) const;
  Value* Erf(Value* x) const;
  Value* Sigmoid(Value* x) const {
    return b_.CreateFDiv(C(1), b_.CreateFAdd(C(1), Exp(b_.CreateFNeg(x))));
  }

 private:
  Builder& b_;
  const Traits& traits_;
  llvm::Type* type_;
};

Value* F32::Scale(Value* x, Value* n) const {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  if (!traits_.scales_by_powers || vector == nullptr) return nullptr;
  switch (vector->getNumElements()) {
    case 16:
      // All lanes, rounded as everything else is.
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                                {},
                                {x, n, x, b_.getInt16(0xffff), b_.getInt32(4)});
    case 8:
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_256,
                                {}, {x, n, x, b_.getInt8(0xff)});
    default:
      return nullptr;
  }
}

// Cody and Waite's reduction to [-ln 2 / 2, ln 2 / 2] and the polynomial
// 1 + r + ... of sixth degree whose largest relative error there is the least:
// 3.1e-9, a twentieth of a unit. 2^n is applied in two halves, so that results
// below the least normal number come out rounded, not flushed.
Value* F32::Exp(Value* x) const {
  x = Clamp(x, -104.5, 89.0);
  // Adding 1.5 * 2^23 rounds to an integer that then stands in the low bits.
  Value* magic = C(12582912.0);
  Value* shifted = Fma(x, C(1.44269504088896341), magic);
  Value* n = b_.CreateFSub(shifted, magic);
  Value* r = Fma(n, C(-0.693359375), x);
  r = Fma(n, C(2.12194440e-4), r);
  Value* sum = Poly(r, {1.38145377e-3, 8.36874532e-3, 4.166839083e-2,
                        1.666652040e-1, 4.999999343e-1, 1, 1});
  if (Value* scaled = Scale(sum, n)) return scaled;
  Value* k = b_.CreateSub(AsInt(shifted), AsInt(magic));
  Value* half = b_.CreateAShr(k, I(1));
  const auto power = [&](Value* exponent) {
    return AsFloat(b_.CreateShl(b_.CreateAdd(exponent, I(127)), I(23)));
  };
  Value* scaled = b_.CreateFMul(sum, power(half));
  return b_.CreateFMul(scaled, power(b_.CreateSub(k, half)));
}

// Cephes logf: x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
Value* F32::Log(Value* x) const {
  Value* tiny = b_.CreateFCmpOLT(x, C(0x1p-126));
  Value* normal = b_.CreateSelect(tiny, b_.CreateFMul(x, C(0x1p23)), x);
  Value* bits = AsInt(normal);
  // Distance of the exponent field from that of sqrt(1/2).
  Value* e = b_.CreateAShr(b_.CreateSub(bits, I(0x3f3504f3)), I(23));
  Value* m = AsFloat(b_.CreateSub(bits, b_.CreateShl(e, I(23))));
  e = b_.CreateSub(e, b_.CreateSelect(tiny, I(23), I(0)));
  Value* f = b_.CreateFSub(m, C(1));
  Value* n = b_.CreateSIToFP(e, type_);
  Value* z = b_.CreateFMul(f, f);
  Value* p = Poly(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
                      -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                      2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Value* y = b_.CreateFMul(b_.CreateFMul(f, z), p);
  y = Fma(n, C(-2.12194440e-4), y);
  y = Fma(z, C(-0.5), y);
  Value* result = Fma(n, C(0.693359375), b_.CreateFAdd(f, y));
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, C(infinity)), x, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, C(0)), C(-infinity), result);
  // Negative or NaN.
  return b_.CreateSelect(b_.CreateFCmpULT(x, C(0)), C(nan), result);
}

// Cephes tanhf: a polynomial near 0, else 1 - 2 / (exp(2|x|) + 1).
Value* F32::Tanh(Value* x) const {
  Value* a = Abs(x);
  Value* e = Exp(b_.CreateFAdd(a, a));
  Value* far = b_.CreateFSub(C(1), b_.CreateFDiv(C(2), b_.CreateFAdd(e, C(1))));
  Value* z = b_.CreateFMul(x, x);
  Value* p = Poly(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                      1.33314422036e-1, -3.33332819422e-1});
  Value* near = Fma(b_.CreateFMul(p, z), x, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, C(0.625)), near, CopySign(far, x));
}

// The rational approximation that Eigen uses; good to a few units.
Value* F32::Erf(Value* x) const {
  Value* c = Clamp(x, -4.0, 4.0);
  Value* z = b_.CreateFMul(c, c);
  Value* p = Poly(
      z, {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
          -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
          -1.60960333262415e-02});
  Value* q = Poly(
      z, {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
          -7.37332916720468e-03, -1.42647390514189e-02});
  // The quotient first: the product would lose the smallest arguments.
  return b_.CreateFMul(c, b_.CreateFDiv(p, q));
}

// `function` of libm on every lane.
Value* CallLibm(Builder& b, const char* function, Value* x) {
  llvm::Module* module = b.GetInsertBlock()->getModule();
  llvm::Type* scalar = x->getType()->getScalarType();
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(function, scalar, scalar);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr) return b.CreateCall(callee, {x});
  Value* result = llvm::PoisonValue::get(vector);
  for (unsigned i = 0; i < vector->getNumElements(); ++i) {
    Value* lane = b.CreateCall(callee, {b.CreateExtractElement(x, i)});
    result = b.CreateInsertElement(result, lane, i);
  }
  return result;
}

Value* EmitF64(Builder& b, UnaryOp op, Value* x) {
  Value* one = llvm::ConstantFP::get(x->getType(), 1);
  switch (op) {
    case UnaryOp::kExp:
      return CallLibm(b, "exp", x);
    case UnaryOp::kLog:
      return CallLibm(b, "log", x);
    case UnaryOp::kTanh:
      return CallLibm(b, "tanh", x);
    case UnaryOp::kErf:
      return CallLibm(b, "erf", x);
    case UnaryOp::kSigmoid:
      return b.CreateFDiv(
          one, b.CreateFAdd(one, CallLibm(b, "exp", b.CreateFNeg(x))));
    default:
      break;
  }
  CHECK(false) << "no f64 function " << static_cast<int>(op);
  return nullptr;
}

Value* EmitF32(Builder& b, const Traits& traits, UnaryOp op, Value* x) {
  const F32 f(b, traits, x->getType());
  switch (op) {
    case UnaryOp::kExp:
      return f.Exp(x);
    case UnaryOp::kLog:
      return f.Log(x);
    case UnaryOp::kTanh:
      return f.Tanh(x);
    case UnaryOp::kErf:
      return f.Erf(x);
    case UnaryOp::kSigmoid:
      return f.Sigmoid(x);
    default:
      break;
  }
  CHECK(false) << "no f32 function " << static_cast<int>(op);
  return nullptr;
}

Value* EmitInteger(Builder& b, UnaryOp op, Value* x) {
  if (op == UnaryOp::kNeg) return b.CreateNeg(x);
  CHECK(op == UnaryOp::kAbs) << "integer function " << static_cast<int>(op);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse());
}

}  // namespace

llvm::Value* EmitUnary(Builder& b, const Traits& traits, UnaryOp op,
                       llvm::Value* x) {
  if (!x->getType()->isFPOrFPVectorTy()) return EmitInteger(b, op, x);
  switch (op) {
    case UnaryOp::kNeg:
      return b.CreateFNeg(x);
    case UnaryOp::kAbs:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    case UnaryOp::kSqrt:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case UnaryOp::kRsqrt:
      return b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1),
                          b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case UnaryOp::kFloor:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case UnaryOp::kRound:
      // To nearest, ties to even: one instruction where there is one.
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::rint, x);
    default:
      return x->getType()->getScalarType()->isDoubleTy()
                 ? EmitF64(b, op, x)
                 : EmitF32(b, traits, op, x);
  }
}

}  // namespace regatta::cpu

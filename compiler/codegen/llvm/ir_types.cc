#include "compiler/codegen/llvm/ir_types.h"

#include "base/check.h"

namespace regatta::cpu {
namespace {

using llvm::Value;

// Integer constant of the (vector) type of `like`.
llvm::Constant* Bits(Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}

Value* WidenHalfByIntegers(Builder& b, Value* half) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), half->getType());
  llvm::Type* f32 = WithLanesOf(b.getFloatTy(), half->getType());
  Value* h = b.CreateZExt(half, i32);
  Value* sign = b.CreateShl(b.CreateAnd(h, Bits(h, 0x8000)), Bits(h, 16));
  Value* magnitude = b.CreateAnd(h, Bits(h, 0x7fff));
  Value* shifted = b.CreateShl(magnitude, Bits(h, 13));
  // The exponents' biases differ by 112; the product is exact, subnormals too.
  Value* scaled = b.CreateFMul(b.CreateBitCast(shifted, f32),
                               llvm::ConstantFP::get(f32, 0x1p112));
  Value* special = b.CreateOr(shifted, Bits(h, 0x7f800000));  // inf, NaN
  Value* is_special = b.CreateICmpUGE(magnitude, Bits(h, 0x7c00));
  Value* bits =
      b.CreateSelect(is_special, special, b.CreateBitCast(scaled, i32));
  return b.CreateBitCast(b.CreateOr(bits, sign), f32);
}

Value* NarrowHalfByIntegers(Builder& b, Value* value) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  llvm::Type* i16 = WithLanesOf(b.getInt16Ty(), value->getType());
  llvm::Type* f32 = value->getType();
  Value* bits = b.CreateBitCast(value, i32);
  Value* sign = b.CreateAnd(bits, Bits(bits, 0x80000000u));
  Value* f = b.CreateXor(bits, sign);
  // At least 2^16: infinity, or a quiet NaN.
  Value* is_nan = b.CreateICmpUGT(f, Bits(f, 0x7f800000));
  Value* large = b.CreateSelect(is_nan, Bits(f, 0x7e00), Bits(f, 0x7c00));
  // Below the least normal: adding 0.5 rounds at the subnormals' unit.
  Value* magic = llvm::ConstantFP::get(f32, 0.5);
  Value* sum = b.CreateFAdd(b.CreateBitCast(f, f32), magic);
  Value* small = b.CreateSub(b.CreateBitCast(sum, i32), Bits(f, 0x3f000000));
  // Otherwise: re-bias, add half a unit less one, and one more if odd.
  Value* odd = b.CreateAnd(b.CreateLShr(f, Bits(f, 13)), Bits(f, 1));
  Value* rounded = b.CreateAdd(f, Bits(f, 0xc8000fffu));
  Value* normal = b.CreateLShr(b.CreateAdd(rounded, odd), Bits(f, 13));
  Value* result =
      b.CreateSelect(b.CreateICmpULT(f, Bits(f, 0x38800000)), small, normal);
  result =
      b.CreateSelect(b.CreateICmpUGE(f, Bits(f, 0x47800000)), large, result);
  result = b.CreateOr(result, b.CreateLShr(sign, Bits(f, 16)));
  return b.CreateTrunc(result, i16);
}

Value* WidenBfloat(Builder& b, Value* value) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  Value* bits = b.CreateZExt(value, i32);
  return b.CreateBitCast(b.CreateShl(bits, Bits(bits, 16)),
                         WithLanesOf(b.getFloatTy(), value->getType()));
}

Value* NarrowBfloat(Builder& b, Value* value) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  Value* bits = b.CreateBitCast(value, i32);
  Value* odd = b.CreateAnd(b.CreateLShr(bits, Bits(bits, 16)), Bits(bits, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(bits, Bits(bits, 0x7fff)), odd);
  // Rounding would carry some NaNs into infinity: make them quiet instead.
  Value* nan = b.CreateOr(bits, Bits(bits, 0x400000));
  Value* result = b.CreateSelect(b.CreateFCmpUNO(value, value), nan, rounded);
  return b.CreateTrunc(b.CreateLShr(result, Bits(bits, 16)),
                       WithLanesOf(b.getInt16Ty(), value->getType()));
}

}  // namespace

llvm::Type* RegisterType(DType dtype, llvm::LLVMContext& context) {
  switch (dtype) {
    case DType::kF64:
      return llvm::Type::getDoubleTy(context);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return llvm::Type::getFloatTy(context);
    case DType::kI32:
      return llvm::Type::getInt32Ty(context);
    case DType::kI8:
      return llvm::Type::getInt8Ty(context);
    case DType::kBool:
      return llvm::Type::getInt1Ty(context);
  }
  CHECK(false) << "dtype " << static_cast<int>(dtype);
  return nullptr;
}

llvm::Type* MemoryType(DType dtype, llvm::LLVMContext& context) {
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    return llvm::Type::getInt16Ty(context);
  }
  return RegisterType(dtype, context);
}

llvm::Type* WithLanesOf(llvm::Type* scalar, llvm::Type* like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  if (vector == nullptr) return scalar;
  return llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

llvm::Value* FromMemory(Builder& b, const Traits& traits, llvm::Value* value,
                        DType dtype) {
  if (dtype == DType::kBF16) return WidenBfloat(b, value);
  if (dtype != DType::kF16) return value;
  if (!traits.native_f16) return WidenHalfByIntegers(b, value);
  Value* half =
      b.CreateBitCast(value, WithLanesOf(b.getHalfTy(), value->getType()));
  return b.CreateFPExt(half, WithLanesOf(b.getFloatTy(), value->getType()));
}

llvm::Value* ToMemory(Builder& b, const Traits& traits, llvm::Value* value,
                      DType dtype) {
  if (dtype == DType::kBF16) return NarrowBfloat(b, value);
  if (dtype != DType::kF16) return value;
  if (!traits.native_f16) return NarrowHalfByIntegers(b, value);
  Value* half =
      b.CreateFPTrunc(value, WithLanesOf(b.getHalfTy(), value->getType()));
  return b.CreateBitCast(half, WithLanesOf(b.getInt16Ty(), value->getType()));
}

llvm::Constant* Number(double value, DType dtype, llvm::LLVMContext& context) {
  llvm::Type* type = RegisterType(dtype, context);
  if (type->isFloatingPointTy()) return llvm::ConstantFP::get(type, value);
  return llvm::ConstantInt::get(type, static_cast<int64_t>(value), true);
}

}  // namespace regatta::cpu

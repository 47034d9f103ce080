// Arithmetic of the kernel emitter. Values that are the same for every lane
// stay scalars until they meet one that is not.
#include <iterator>
#include <utility>

#include "base/check.h"
#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/codegen/llvm/math_functions.h"
#include "llvm/IR/IntrinsicsAArch64.h"

namespace regatta::cpu {

KernelEmitter::Val KernelEmitter::Emit(const loop::Value& value) {
  switch (value.kind) {
    case loop::Value::Kind::kConst:
      return {Number(value.constant, value.dtype, context()), false};
    case loop::Value::Kind::kIndex:
      return EmitIndexValue(value);
    case loop::Value::Kind::kLoad:
      return Load(value);
    case loop::Value::Kind::kUnary: {
      const Val operand = Emit(*value.operands[0]);
      return {EmitUnary(b_, state_.traits, value.unary, operand.value),
              operand.vector};
    }
    case loop::Value::Kind::kBinary:
      return EmitBinary(value);
    case loop::Value::Kind::kSelect:
      return EmitSelect(value);
    case loop::Value::Kind::kCast:
      return EmitCast(value);
    case loop::Value::Kind::kProducts:
      break;
  }
  CHECK(false) << "value kind " << static_cast<int>(value.kind);
  return {};
}

KernelEmitter::Val KernelEmitter::EmitIndexValue(const loop::Value& value) {
  const Form form = Resolve(value.offset);
  llvm::Value* index = b_.CreateTrunc(IndexValue(form), b_.getInt32Ty());
  const bool vector = form.lane != 0;
  if (vector) {
    index = b_.CreateAdd(b_.CreateVectorSplat(lanes_.width, index),
                         LaneSteps(b_.getInt32Ty(), form.lane));
  }
  llvm::Type* type =
      WithLanesOf(RegisterType(value.dtype, context()), index->getType());
  if (IsFloat(value.dtype)) return {b_.CreateSIToFP(index, type), vector};
  return {b_.CreateSExtOrTrunc(index, type), vector};
}

llvm::Value* KernelEmitter::ToVector(Val value) {
  return value.vector ? value.value : Splat(value.value, lanes_.width);
}

llvm::Value* KernelEmitter::Splat(llvm::Value* scalar, int lanes) {
  if (llvm::isa<llvm::Constant>(scalar)) {
    return b_.CreateVectorSplat(lanes, scalar);
  }
  llvm::Value*& splat = splats_[{scalar, lanes}];
  if (splat != nullptr) return splat;
  // Beside the scalar, so that it serves wherever the scalar does.
  Builder::InsertPointGuard guard(b_);
  if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(scalar)) {
    llvm::BasicBlock* block = instruction->getParent();
    b_.SetInsertPoint(block, llvm::isa<llvm::PHINode>(instruction)
                                 ? block->getFirstInsertionPt()
                                 : std::next(instruction->getIterator()));
  } else {
    b_.SetInsertPoint(&*function_->getEntryBlock().getFirstInsertionPt());
  }
  splat = b_.CreateVectorSplat(lanes, scalar);
  return splat;
}

void KernelEmitter::Unify(Val& a, Val& b) {
  if (a.vector == b.vector) return;
  a = {ToVector(a), true};
  b = {ToVector(b), true};
}

KernelEmitter::Val KernelEmitter::EmitBinary(const loop::Value& value) {
  Val a = Emit(*value.operands[0]);
  Val b = Emit(*value.operands[1]);
  Unify(a, b);
  return {Arithmetic(value.binary, a.value, b.value), a.vector};
}

KernelEmitter::Val KernelEmitter::EmitShort(const loop::Value& value) {
  if (llvm::Value* lane = ShortLane(value)) return {lane, true};
  const Val byte = Emit(value);
  return {b_.CreateSExt(byte.value,
                        WithLanesOf(b_.getInt16Ty(), byte.value->getType())),
          byte.vector};
}

// One lane of a register for all lanes: widened in the register, so that a
// multiplication by the lane follows. Null for everything else.
llvm::Value* KernelEmitter::ShortLane(const loop::Value& value) {
  const bool in_slot = value.kind == loop::Value::Kind::kLoad &&
                       buffer(value.buffer).scope == loop::Scope::kRegister &&
                       bases_.count(value.buffer) == 0;
  if (!in_slot) return nullptr;
  const Form form = Resolve(value.offset);
  if (form.lane != 0 || lanes_.width == 1) return nullptr;
  const SlotPlace place = SlotOf(value.buffer, form.constant);
  llvm::Type* slot = place.slot->getAllocatedType();
  if (!slot->isVectorTy()) return nullptr;
  llvm::Value* wide = b_.CreateSExt(b_.CreateLoad(slot, place.slot),
                                    WithLanesOf(b_.getInt16Ty(), slot));
  return b_.CreateShuffleVector(wide,
                                std::vector<int>(lanes_.width, place.within));
}

llvm::Value* KernelEmitter::WideProduct(llvm::Value* a, llvm::Value* b) {
  llvm::Type* wide = WithLanesOf(b_.getInt32Ty(), a->getType());
  constexpr unsigned kLanes = 4;
  if (llvm::cast<llvm::FixedVectorType>(wide)->getNumElements() == kLanes) {
    return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_smull, {wide},
                              {a, b});
  }
  return b_.CreateMul(b_.CreateSExt(a, wide), b_.CreateSExt(b, wide));
}

llvm::Value* KernelEmitter::Arithmetic(BinaryOp op, llvm::Value* a,
                                       llvm::Value* b) {
  const bool is_float = a->getType()->isFPOrFPVectorTy();
  switch (op) {
    case BinaryOp::kAdd:
      return is_float ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case BinaryOp::kSub:
      return is_float ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case BinaryOp::kMul:
      return is_float ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case BinaryOp::kDiv:
      return is_float ? b_.CreateFDiv(a, b) : IntegerDivide(a, b);
    case BinaryOp::kMax:
      return is_float ? Extreme(llvm::Intrinsic::maximum, a, b)
                      : b_.CreateSelect(b_.CreateICmpSGT(a, b), a, b);
    case BinaryOp::kMin:
      return is_float ? Extreme(llvm::Intrinsic::minimum, a, b)
                      : b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
    case BinaryOp::kLess:
      return is_float ? b_.CreateFCmpOLT(a, b) : b_.CreateICmpSLT(a, b);
    case BinaryOp::kLessEqual:
      return is_float ? b_.CreateFCmpOLE(a, b) : b_.CreateICmpSLE(a, b);
    case BinaryOp::kEqual:
      return is_float ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
  }
  CHECK(false) << "binary " << static_cast<int>(op);
  return nullptr;
}

// A NaN operand gives NaN, whatever the order. Which of two zeros it is does
// not matter, which saves x86 two instructions.
llvm::Value* KernelEmitter::Extreme(llvm::Intrinsic::ID id, llvm::Value* a,
                                    llvm::Value* b) {
  Builder::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags = b_.getFastMathFlags();
  flags.setNoSignedZeros();
  b_.setFastMathFlags(flags);
  return b_.CreateBinaryIntrinsic(id, a, b);
}

// Defined for every pair, so that no lane traps: x / 0 is 0, and the least
// number over -1 wraps to itself.
llvm::Value* KernelEmitter::IntegerDivide(llvm::Value* a, llvm::Value* b) {
  llvm::Value* zero = llvm::Constant::getNullValue(b->getType());
  llvm::Value* minus_one = llvm::Constant::getAllOnesValue(b->getType());
  llvm::Value* one = llvm::ConstantInt::get(b->getType(), 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  llvm::Value* by_minus_one = b_.CreateICmpEQ(b, minus_one);
  llvm::Value* safe =
      b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), one, b);
  llvm::Value* quotient = b_.CreateSDiv(a, safe);
  quotient = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), quotient);
  return b_.CreateSelect(by_zero, zero, quotient);
}

llvm::Value* KernelEmitter::Combine(Reduction reduction, llvm::Value* a,
                                    llvm::Value* b) {
  switch (reduction) {
    case Reduction::kNone:
      return b;
    case Reduction::kSum:
      return Arithmetic(BinaryOp::kAdd, a, b);
    case Reduction::kProd:
      return Arithmetic(BinaryOp::kMul, a, b);
    case Reduction::kMax:
      return Arithmetic(BinaryOp::kMax, a, b);
    case Reduction::kMin:
      return Arithmetic(BinaryOp::kMin, a, b);
  }
  CHECK(false) << "reduction " << static_cast<int>(reduction);
  return nullptr;
}

// Halves the vector until one lane is left.
llvm::Value* KernelEmitter::AcrossLanes(Reduction reduction, Val value,
                                        DType dtype) {
  llvm::Value* vector = ToVector(value);
  if (llvm::Value* active = ActiveLanes()) {
    llvm::Constant* identity = llvm::ConstantVector::getSplat(
        llvm::ElementCount::getFixed(lanes_.width),
        Number(loop::Identity(reduction, dtype), dtype, context()));
    vector = b_.CreateSelect(active, vector, identity);
  }
  for (int width = lanes_.width; width > 1; width /= 2) {
    std::vector<int> low;
    std::vector<int> high;
    for (int i = 0; i < width / 2; ++i) {
      low.push_back(i);
      high.push_back(width / 2 + i);
    }
    vector = Combine(reduction, b_.CreateShuffleVector(vector, low),
                     b_.CreateShuffleVector(vector, high));
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

KernelEmitter::Val KernelEmitter::EmitSelect(const loop::Value& value) {
  Val condition = Emit(*value.operands[0]);
  Val a = Emit(*value.operands[1]);
  Val b = Emit(*value.operands[2]);
  Unify(a, b);
  if (condition.vector || a.vector) {
    condition = {ToVector(condition), true};
    a = {ToVector(a), true};
    b = {ToVector(b), true};
  }
  return {b_.CreateSelect(condition.value, a.value, b.value), a.vector};
}

KernelEmitter::Val KernelEmitter::EmitCast(const loop::Value& value) {
  const Val operand = Emit(*value.operands[0]);
  const DType from = value.operands[0]->dtype;
  const DType to = value.dtype;
  llvm::Value* x = operand.value;
  llvm::Type* type = WithLanesOf(RegisterType(to, context()), x->getType());
  if (to == DType::kBool) {
    llvm::Value* zero = llvm::Constant::getNullValue(x->getType());
    x = IsFloat(from) ? b_.CreateFCmpUNE(x, zero) : b_.CreateICmpNE(x, zero);
  } else if (from == DType::kBool) {
    x = IsFloat(to) ? b_.CreateUIToFP(x, type) : b_.CreateZExt(x, type);
  } else if (IsFloat(from) && IsFloat(to)) {
    x = b_.CreateFPCast(x, type);
  } else if (IsFloat(from)) {
    // Towards zero; out of range to the nearest, NaN to 0.
    x = b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, x->getType()},
                           {x});
  } else if (IsFloat(to)) {
    x = b_.CreateSIToFP(x, type);
  } else {
    x = b_.CreateSExtOrTrunc(x, type);
  }
  // Narrow floats are kept in f32 registers: whatever the source, the value
  // must be one that the type has.
  if (to == DType::kF16 || to == DType::kBF16) {
    x = FromMemory(b_, state_.traits, ToMemory(b_, state_.traits, x, to), to);
  }
  return {x, operand.vector};
}

}  // namespace regatta::cpu

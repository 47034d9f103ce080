// How element types look in LLVM: in memory, and as values in registers. f16
// and bf16 are computed in f32; they exist in memory only.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_IR_TYPES_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_IR_TYPES_H_

#include "compiler/codegen/llvm/target_info.h"
#include "compiler/module/dtype.h"
#include "llvm/IR/IRBuilder.h"

namespace regatta::cpu {

using Builder = llvm::IRBuilder<>;

llvm::Type* RegisterType(DType dtype, llvm::LLVMContext& context);
// An integer of the same size where RegisterType differs (f16, bf16).
llvm::Type* MemoryType(DType dtype, llvm::LLVMContext& context);
// `scalar` itself, or a vector when `like` is one.
llvm::Type* WithLanesOf(llvm::Type* scalar, llvm::Type* like);

// What was loaded as MemoryType (or a vector of it) as a value, and back with
// rounding to nearest even.
llvm::Value* FromMemory(Builder& builder, const Traits& traits,
                        llvm::Value* value, DType dtype);
llvm::Value* ToMemory(Builder& builder, const Traits& traits,
                      llvm::Value* value, DType dtype);

// A number as a constant of RegisterType.
llvm::Constant* Number(double value, DType dtype, llvm::LLVMContext& context);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_IR_TYPES_H_

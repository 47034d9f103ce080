// Elementary functions of scalars and vectors. In f32 they are polynomials
// inline, good to a few units in the last place over the whole range; in f64
// (wide references) they are calls of libm, lane by lane.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_MATH_FUNCTIONS_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_MATH_FUNCTIONS_H_

#include "compiler/codegen/llvm/ir_types.h"
#include "compiler/codegen/llvm/target_info.h"
#include "compiler/expr/expr.h"

namespace regatta::cpu {

// `op` of a value of any arithmetic register type.
// REQUIRES: integers only for kNeg and kAbs.
llvm::Value* EmitUnary(Builder& builder, const Traits& traits, UnaryOp op,
                       llvm::Value* x);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_MATH_FUNCTIONS_H_

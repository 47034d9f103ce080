// Arithmetic whose opcode is the same for every type: arithmetic.cc asks for
// the type and hands over to the file for it.
#ifndef REGATTA_COMPILER_PTXSIM_ARITHMETIC_H_
#define REGATTA_COMPILER_PTXSIM_ARITHMETIC_H_

#include "compiler/ptxsim/instruction_builder.h"

namespace regatta::ptxsim {

enum class Arithmetic {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kRem,
  kMin,
  kMax,
  kAbs,
  kNeg,
  kMad,
  kFma
};

// Operands besides the destination.
constexpr int SourceCount(Arithmetic op) {
  if (op == Arithmetic::kAbs || op == Arithmetic::kNeg) return 1;
  return op == Arithmetic::kMad || op == Arithmetic::kFma ? 3 : 2;
}

// Each takes the rest of the modifiers and the operands. REQUIRES: the type is
// an integer; f32; f64; f16 or bf16, packed or not.
void DecodeInteger(InstructionBuilder& b, Arithmetic op, Type type);
void DecodeFloat32(InstructionBuilder& b, Arithmetic op);
void DecodeFloat64(InstructionBuilder& b, Arithmetic op);
void DecodeFloat16(InstructionBuilder& b, Arithmetic op, Type type);

// add, sub and mad of integers that take or leave a carry (.cc).
void DecodeCarry(InstructionBuilder& b, Arithmetic op, Type type,
                 bool takes_carry, bool leaves_carry);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_ARITHMETIC_H_

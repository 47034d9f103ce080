// THE list of instructions that add a block of sums of products to accumulators
// (loop::Value::Kind::kProducts), with what a processor must have for each.
// What is not in it for a target is never emitted for it: LLVM would end the
// process over an intrinsic that the processor lacks.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_PRODUCT_INSTRUCTIONS_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_PRODUCT_INSTRUCTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/target/target.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/TargetParser/Triple.h"

namespace regatta::cpu {

struct ProductInstruction {
  const char* form;      // of Target::products
  const char* features;  // "+dotprod"; several: all of them
  llvm::Triple::ArchType architecture;
  int sums;  // accumulators in one vector
  llvm::Intrinsic::ID intrinsic;
  // The intrinsic's operand types: those of the accumulators, or the elements
  // as they are; and whether its name has them.
  enum class Operands { kElements, kWords } operands;
  bool overloaded;
  // The second operand is the one that may be a lane of a register.
  bool swap;

  bool OnArchitecture(const llvm::Triple& triple) const {
    return triple.getArch() == architecture;
  }
};

absl::Span<const ProductInstruction> ProductInstructions();

// The instruction for `block` of elements of `type` on a complete target; null
// when it has none.
const ProductInstruction* FindProductInstruction(
    const loop::ProductBlock& block, DType type, const Target& target);

// Internal, naming the block and the target, when a kernel has products that no
// instruction of the target computes: a bug of the rule that wrote it.
absl::Status CheckProducts(const loop::Program& program, const Target& target);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_PRODUCT_INSTRUCTIONS_H_

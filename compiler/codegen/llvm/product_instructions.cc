#include "compiler/codegen/llvm/product_instructions.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/llvm/target_info.h"
#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace regatta::cpu {
namespace {

constexpr auto kArm = llvm::Triple::aarch64;
constexpr auto kX86 = llvm::Triple::x86_64;
constexpr auto kElements = ProductInstruction::Operands::kElements;
constexpr auto kWords = ProductInstruction::Operands::kWords;

// To add an instruction, add it here; a form may have several, for vectors of
// different lengths.
constexpr ProductInstruction kInstructions[] = {
    {"i8x4", "+dotprod", kArm, 2, llvm::Intrinsic::aarch64_neon_sdot, kElements,
     true, true},
    {"i8x4", "+dotprod", kArm, 4, llvm::Intrinsic::aarch64_neon_sdot, kElements,
     true, true},
    {"i8x2x2x8", "+i8mm", kArm, 4, llvm::Intrinsic::aarch64_neon_smmla,
     kElements, true, false},
    {"bf16x2x2x4", "+bf16", kArm, 4, llvm::Intrinsic::aarch64_neon_bfmmla,
     kElements, false, false},
    {"ui8x4", "+avx512vnni,+evex512", kX86, 16,
     llvm::Intrinsic::x86_avx512_vpdpbusd_512, kWords, false, false},
    {"ui8x4", "+avx512vnni,+avx512vl", kX86, 8,
     llvm::Intrinsic::x86_avx512_vpdpbusd_256, kWords, false, false},
    {"ui8x4", "+avx512vnni,+avx512vl", kX86, 4,
     llvm::Intrinsic::x86_avx512_vpdpbusd_128, kWords, false, false},
    {"ui8x4", "+avxvnni", kX86, 8, llvm::Intrinsic::x86_avx512_vpdpbusd_256,
     kWords, false, false},
    {"ui8x4", "+avxvnni", kX86, 4, llvm::Intrinsic::x86_avx512_vpdpbusd_128,
     kWords, false, false},
};

absl::Status CheckStmt(const loop::Program& program, const loop::Stmt& stmt,
                       const Target& target) {
  if (stmt.value && stmt.value->kind == loop::Value::Kind::kProducts) {
    const loop::Value& value = *stmt.value;
    const DType type = value.operands[0]->dtype;
    if (FindProductInstruction(value.block, type, target) == nullptr) {
      return absl::InternalError(absl::StrCat(
          "'", loop::ToString(program, stmt), "': ", target.mcpu,
          " has no such instruction; it has ",
          target.products.empty() ? "none"
                                  : absl::StrJoin(target.products, "+")));
    }
  }
  for (const loop::StmtPtr& child : stmt.body) {
    RETURN_IF_ERROR(CheckStmt(program, *child, target));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const ProductInstruction> ProductInstructions() {
  return kInstructions;
}

const ProductInstruction* FindProductInstruction(
    const loop::ProductBlock& block, DType type, const Target& target) {
  const llvm::Triple triple(LlvmTriple(target.triple));
  for (const ProductInstruction& instruction : kInstructions) {
    const std::optional<ProductForm> form = ParseProductForm(instruction.form);
    const bool fits = form->type == type &&
                      form->unsigned_a == block.unsigned_a &&
                      form->rows == block.rows && form->depth == block.depth &&
                      (form->cols == 0 || form->cols == block.cols) &&
                      instruction.sums == block.rows * block.cols;
    if (fits && instruction.OnArchitecture(triple) &&
        std::count(target.products.begin(), target.products.end(),
                   instruction.form) > 0 &&
        HasFeatures(target, instruction.features)) {
      return &instruction;
    }
  }
  return nullptr;
}

absl::Status CheckProducts(const loop::Program& program, const Target& target) {
  for (const loop::Kernel& kernel : program.kernels) {
    RETURN_IF_ERROR(CheckStmt(program, *kernel.body, target));
  }
  return absl::OkStatus();
}

}  // namespace regatta::cpu

// What LLVM knows about processors: completing targets, this machine, and the
// target machine that emits code.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_TARGET_INFO_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_TARGET_INFO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "llvm/Target/TargetMachine.h"

namespace regatta::cpu {

// `target` with a normalised triple, a processor, and the vector fields of that
// processor. InvalidArgument: no triple, an architecture this LLVM has not, a
// format other than ELF, an unknown processor or feature (with near names).
absl::StatusOr<Target> CompleteCpuTarget(Target target);

// Architectures that this LLVM makes objects for, of those that boards have.
std::vector<std::string> CpuArchitectures();

// This machine's processor and the triple of this process.
absl::StatusOr<Target> HostCpuTarget();

// What the emitter decides by. Everything else is LLVM's business.
struct Traits {
  int vector_bytes = 4;
  // Masked vector loads and stores of 4 and 8 byte elements are instructions;
  // of 1 and 2 byte elements too.
  bool masked_memory = false;
  bool masked_small_memory = false;
  // Conversions between f16 and f32 are instructions, not library calls.
  bool native_f16 = false;
  // Streaming stores of vectors need addresses that are multiples of the
  // vector's size, and a fence before another thread may look.
  bool aligned_streams = false;
  // Products of 16-bit elements are added in 32 bits by one instruction
  // (smlal).
  bool widening_multiply = false;
  // x * 2^n of f32 vectors is an instruction.
  bool scales_by_powers = false;
};

// REQUIRES: `target` is complete.
Traits TraitsOf(const Target& target);

// Whether the processor has all of "+a,+b". REQUIRES: `target` is complete.
bool HasFeatures(const Target& target, const std::string& features);

// A machine for a complete target, owned by this thread and kept for the next
// call. Internal when LLVM refuses.
absl::StatusOr<llvm::TargetMachine*> MachineFor(const Target& target);

// "x86_64-linux-gnu" in LLVM's long form.
std::string LlvmTriple(const std::string& triple);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_TARGET_INFO_H_

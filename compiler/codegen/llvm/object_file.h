// An LLVM module to machine code, as an object file or as assembly.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_OBJECT_FILE_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_OBJECT_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace regatta::cpu {

// Runs code generation, which consumes `module`. Internal with what LLVM said.
absl::StatusOr<std::string> EmitFile(llvm::Module& module,
                                     llvm::TargetMachine& machine,
                                     llvm::CodeGenFileType type);

// Names that an object file refers to and does not define, sorted.
absl::StatusOr<std::vector<std::string>> UndefinedSymbols(
    std::string_view object);

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_OBJECT_FILE_H_

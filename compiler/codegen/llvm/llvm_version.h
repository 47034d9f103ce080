// Which LLVM makes code for processors. Links none of it.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_LLVM_VERSION_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_LLVM_VERSION_H_

#include <string>

namespace regatta {

// "LLVM 19.1.7": the tool of cpu targets.
std::string LlvmVersion();

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_LLVM_VERSION_H_

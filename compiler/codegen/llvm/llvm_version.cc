#include "compiler/codegen/llvm/llvm_version.h"

namespace regatta {

std::string LlvmVersion() { return "LLVM " REGATTA_LLVM; }

}  // namespace regatta

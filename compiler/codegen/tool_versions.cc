#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/cuda/nvrtc.h"

namespace regatta {

// To add a code generator, add its tool here.
std::string CompilerVersionOfKind(std::string_view target_kind, int driver) {
  if (target_kind == "cpu") return CompilerVersionOf("LLVM " REGATTA_LLVM);
  if (target_kind == "opencl") return CompilerVersionOf("OpenCL C 1.2");
  if (target_kind == "cuda")
    return CompilerVersionOf(cuda::NvrtcVersion(driver));
  return "";
}

}  // namespace regatta

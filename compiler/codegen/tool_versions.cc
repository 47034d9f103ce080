#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/cuda/cuda_target.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/llvm/llvm_version.h"
#include "compiler/codegen/opencl/opencl_version.h"

namespace regatta {
namespace {

struct Tool {
  std::string_view target_kind;
  // As the code generator's tool_version; `driver` is the target's.
  std::string (*version)(int driver);
  int newest_driver;  // known; 0: targets say nothing of drivers
};

// To add a code generator, add its tool here.
constexpr Tool kTools[] = {
    {"cpu", [](int) { return LlvmVersion(); }, 0},
    {"opencl", [](int) { return OpenClVersion(); }, 0},
    {"cuda", [](int driver) { return cuda::NvrtcVersion(driver); },
     cuda::kNewestDriver},
};

}  // namespace

std::string CompilerVersionOfKind(std::string_view target_kind, int driver) {
  for (const Tool& tool : kTools) {
    if (tool.target_kind == target_kind) {
      return CompilerVersionOf(tool.version(driver));
    }
  }
  return "";
}

int LimitingDriver(std::string_view target_kind, int driver) {
  for (const Tool& tool : kTools) {
    if (tool.target_kind != target_kind || tool.newest_driver == 0) continue;
    return driver >= tool.newest_driver ? 0 : driver;
  }
  return driver;
}

}  // namespace regatta

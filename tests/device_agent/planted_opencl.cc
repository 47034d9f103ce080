#include "tests/device_agent/planted_opencl.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

constexpr int64_t kElements = 1000;
constexpr int64_t kGroup = 50;

struct Planted {
  std::string_view name;
  const char* body;  // of the kernel, where i is the work-item
};
constexpr Planted kPlanted[] = {
    {"honest", "B[i] = A[i] * 2;"},
    // The same, in other words.
    {"honest_too", "B[i] = A[i] + A[i];"},
    {"slow",
     "float x = A[i]; for (int k = 0; k < 2000; ++k) x = x * 1.0f + A[0] * k;"
     "B[i] = A[i] * 2 + 1e-30f * x;"},
    {"wrong", "B[i] = i == 777 ? 3.0f : A[i] * 2;"},
    {"partial", "if (i < 999) B[i] = A[i] * 2;"},
    {"oob_near", "B[i] = A[i] * 2; if (i == 0) B[1000] = 1;"},
    {"write_input",
     "B[i] = A[i] * 2; if (i == 3) ((__global float*)A)[3] += 1;"},
    {"no_compile", "B[i] = nowhere;"},
    {"huge_group", "B[i] = A[i] * 2;"},
    {"crash",
     "B[i] = A[i] * 2; if (i == 5) *(volatile __global int*)0x10 = 1;"},
    {"hang", "volatile int spin = 1; while (spin) {} B[i] = A[i] * 2;"},
};

}  // namespace

std::optional<Module> PlantedOpenClModule(std::string_view name,
                                          const std::string& target) {
  for (const Planted& planted : kPlanted) {
    if (planted.name != name) continue;
    Module module;
    module.name = kTrialModuleName;
    module.target = target;
    module.space = "opencl";
    module.loadable = absl::StrCat(
        "__kernel void regatta_kernel(__global const float* A,\n"
        "                             __global float* B) {\n"
        "  const int i = get_global_id(0);\n  ",
        planted.body, "\n}\n");
    ModuleBuffer in, out;
    in.name = "A";
    out.name = "B";
    out.role = BufferRole::kOutput;
    for (ModuleBuffer* buffer : {&in, &out}) {
      buffer->shape = {kElements};
      buffer->bytes = kElements * 4;
      buffer->space = MemorySpace::kDevice;
      module.buffers.push_back(*buffer);
    }
    ModuleKernel kernel;
    kernel.entry = kTrialModuleName;
    kernel.arguments = {0, 1};
    kernel.grid = {kElements / kGroup};
    kernel.group = {kGroup};
    if (name == "huge_group") {
      kernel.grid = {1};
      kernel.group = {1 << 20};
    }
    module.kernels = {kernel};
    module.host_sequence = {0};
    return module;
  }
  return std::nullopt;
}

}  // namespace regatta

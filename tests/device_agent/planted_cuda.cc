#include "tests/device_agent/planted_cuda.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/module/cuda_binary.h"
#include "tests/device_agent/cuda_ptx.h"

namespace regatta {
namespace {

constexpr int64_t kElements = 1000;
constexpr int64_t kBlock = 50;

// In %f1 A[i], then twice that into B[i].
constexpr char kHonest[] =
    "  ld.global.f32 %f1, [%rd11];\n  add.f32 %f2, %f1, %f1;\n"
    "  st.global.f32 [%rd12], %f2;\n";

struct Planted {
  std::string_view name;
  const char* after;  // of the honest body
};
constexpr Planted kPlanted[] = {
    {"honest", ""},
    // The same with some more to do.
    {"honest_too", "  mul.f32 %f3, %f1, %f1;\n"},
    {"slow",
     "  mov.u32 %r11, 2000;\n$LOOP:\n  fma.rn.f32 %f1, %f1, %f1, %f2;\n"
     "  add.s32 %r11, %r11, -1;\n  setp.ne.s32 %p1, %r11, 0;\n"
     "  @%p1 bra $LOOP;\n"},
    {"wrong",
     "  setp.ne.s32 %p1, %r1, 777;\n  @%p1 bra $END;\n"
     "  mov.f32 %f2, 0f40400000;\n  st.global.f32 [%rd12], %f2;\n$END:\n"},
    {"oob_near",
     "  setp.ne.s32 %p1, %r1, 0;\n  @%p1 bra $END;\n"
     "  st.global.f32 [%rd2+4000], %f1;\n$END:\n"},
    {"write_input",
     "  setp.ne.s32 %p1, %r1, 3;\n  @%p1 bra $END;\n"
     "  st.global.f32 [%rd1+12], %f2;\n$END:\n"},
    {"no_compile", "  abacus.f32 %f1, %f2;\n"},
    {"huge_block", ""},
    {"much_shared", ""},
    {"much_memory", ""},
    {"no_kernel", ""},
    {"illegal_address",
     "  mov.u64 %rd20, 16;\n  st.global.f32 [%rd20], %f1;\n"},
    {"trap", "  trap;\n"},
    {"endless", "$SPIN:\n  bra $SPIN;\n"},
};

void Distort(std::string_view name, Module* module) {
  ModuleKernel& kernel = module->kernels[0];
  if (name == "huge_block") {
    kernel.grid = {1};
    kernel.group = {4096};
  } else if (name == "much_shared") {
    kernel.shared_bytes = 200 << 10;
  } else if (name == "no_kernel") {
    kernel.entry = "elsewhere";
  } else if (name == "much_memory") {
    ModuleBuffer workspace;
    workspace.name = "w";
    workspace.role = BufferRole::kWorkspace;
    workspace.bytes = int64_t{8} << 30;
    workspace.shape = {workspace.bytes / 4};
    workspace.space = MemorySpace::kDevice;
    module->buffers.push_back(workspace);
  }
}

}  // namespace

std::optional<Module> PlantedCudaModule(std::string_view name,
                                        const std::string& target) {
  for (const Planted& planted : kPlanted) {
    if (planted.name != name) continue;
    Module module;
    module.name = kTrialModuleName;
    module.target = target;
    module.space = "cuda";
    module.loadable = SerializeCudaBinary(
        {.arch = "",
         .cubin = "",
         .ptx = testing::PtxHead() +
                testing::PtxKernel(kTrialModuleName, 2,
                                   absl::StrCat(kHonest, planted.after))});
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
    kernel.grid = {kElements / kBlock};
    kernel.group = {kBlock};
    module.kernels = {kernel};
    module.host_sequence = {0};
    Distort(name, &module);
    return module;
  }
  return std::nullopt;
}

}  // namespace regatta

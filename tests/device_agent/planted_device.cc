#include "tests/device_agent/planted_device.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/module/cuda_binary.h"
#include "tests/device_agent/cuda_ptx.h"

namespace regatta {
namespace {

constexpr int64_t kElements = 1000;
constexpr int64_t kGroup = 50;

constexpr char kTwice[] = "B[i] = A[i] * 2;";
// In %f1 A[i], then twice that into B[i].
constexpr char kLoadTwice[] =
    "  ld.global.f32 %f1, [%rd11];\n  add.f32 %f2, %f1, %f1;\n";
constexpr char kStore[] = "  st.global.f32 [%rd12], %f2;\n";

struct Planted {
  std::string name;
  // Bodies of the kernel of thread i; "": not planted there.
  std::string opencl, ptx;
};

// Twice, and `then` besides.
Planted Twice(const std::string& name, const std::string& opencl_then,
              const std::string& ptx_then) {
  return {name, absl::StrCat(kTwice, " ", opencl_then),
          absl::StrCat(kLoadTwice, kStore, ptx_then)};
}

// `then` of one thread alone.
std::string Only(int thread, const std::string& then) {
  return absl::StrCat("  setp.ne.s32 %p1, %r1, ", thread,
                      ";\n  @%p1 bra $END;\n", then, "$END:\n");
}

std::vector<Planted> MakePlanted() {
  return {
      Twice("honest", "", ""),
      // The same in other words, and with some more to do.
      {"honest_too", "B[i] = A[i] + A[i];",
       absl::StrCat(kLoadTwice, kStore, "  mul.f32 %f3, %f1, %f1;\n")},
      {"slow",
       "float x = A[i]; for (int k = 0; k < 2000; ++k) x = x * 1.0f + A[0] * k;"
       "B[i] = A[i] * 2 + 1e-30f * x;",
       absl::StrCat(kLoadTwice, kStore,
                    "  mov.u32 %r11, 2000;\n$LOOP:\n"
                    "  fma.rn.f32 %f1, %f1, %f1, %f2;\n"
                    "  add.s32 %r11, %r11, -1;\n"
                    "  setp.ne.s32 %p1, %r11, 0;\n  @%p1 bra $LOOP;\n")},
      Twice("wrong", "if (i == 777) B[i] = 3.0f;",
            Only(777,
                 "  mov.f32 %f2, 0f40400000;\n"
                 "  st.global.f32 [%rd12], %f2;\n")),
      {"partial", "if (i < 999) B[i] = A[i] * 2;",
       absl::StrCat(kLoadTwice,
                    "  setp.eq.s32 %p1, %r1, 999;\n  @%p1 bra $END;\n", kStore,
                    "$END:\n")},
      Twice("oob_near", "if (i == 0) B[1000] = 1;",
            Only(0, "  st.global.f32 [%rd2+4000], %f1;\n")),
      Twice("write_input", "if (i == 3) ((__global float*)A)[3] += 1;",
            Only(3, "  st.global.f32 [%rd1+12], %f2;\n")),
      {"no_compile", "B[i] = abacus;", "  abacus.f32 %f1, %f2;\n"},
      Twice("no_kernel", "", ""),
      Twice("huge_group", "", ""),
      Twice("much_memory", "", ""),
      Twice("crash", "if (i == 5) *(volatile __global int*)0x10 = 1;",
            "  mov.u64 %rd20, 16;\n  st.global.f32 [%rd20], %f1;\n"),
      {"hang", absl::StrCat("volatile int spin = 1; while (spin) {} ", kTwice),
       "$SPIN:\n  bra $SPIN;\n"},
      // The driver compiles OpenCL's local memory in; nothing traps there.
      {"much_shared", "", absl::StrCat(kLoadTwice, kStore)},
      {"trap", "", absl::StrCat(kLoadTwice, kStore, "  trap;\n")},
  };
}

std::string OpenClSource(const Planted& planted) {
  return absl::StrCat("__kernel void ", kTrialModuleName,
                      "(__global const float* A,\n"
                      "                             __global float* B) {\n"
                      "  const int i = get_global_id(0);\n  ",
                      planted.opencl, "\n}\n");
}

std::string CudaBinaryOf(const Planted& planted) {
  return SerializeCudaBinary(
      {.arch = "",
       .cubin = "",
       .ptx = testing::PtxHead() +
              testing::PtxKernel(kTrialModuleName, 2, planted.ptx)});
}

void Distort(std::string_view name, Module* module) {
  ModuleKernel& kernel = module->kernels[0];
  if (name == "huge_group") {
    kernel.grid = {1};
    kernel.group = {1 << 20};
  } else if (name == "much_shared") {
    kernel.shared_bytes = 200 << 10;
  } else if (name == "no_kernel") {
    kernel.entry = "elsewhere";
  } else if (name == "much_memory") {
    ModuleBuffer workspace;
    workspace.name = "w";
    workspace.role = BufferRole::kWorkspace;
    workspace.bytes = int64_t{1} << 40;
    workspace.shape = {workspace.bytes / 4};
    workspace.space = MemorySpace::kDevice;
    module->buffers.push_back(workspace);
  }
}

}  // namespace

std::optional<Module> PlantedDeviceModule(std::string_view name,
                                          const std::string& target) {
  static const auto& all = *new std::vector<Planted>(MakePlanted());
  const bool opencl = absl::StartsWith(target, "opencl");
  for (const Planted& planted : all) {
    if (planted.name != name) continue;
    if ((opencl ? planted.opencl : planted.ptx).empty()) break;
    Module module;
    module.name = kTrialModuleName;
    module.target = target;
    module.space = target.substr(0, target.find(','));
    module.loadable = opencl ? OpenClSource(planted) : CudaBinaryOf(planted);
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
    module.kernels = {kernel};
    module.host_sequence = {0};
    Distort(name, &module);
    return module;
  }
  return std::nullopt;
}

}  // namespace regatta

// CUDA C++ as text, its compilation by NVRTC, and the targets of its generator.
// No GPU is needed; what needs NVRTC is skipped where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/compile.h"
#include "compiler/lower/lower.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/ptxsim/gpu_architecture.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/device_cases.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const CodeGenerator& Cuda() { return *FindCodeGenerator("cuda"); }

std::string SourceOf(const loop::Program& program) {
  const auto part =
      Cuda().GeneratePart(*LowerProgram(program), TensorsOnly(program),
                          CompleteTargetOf("cuda"), "k");
  EXPECT_TRUE(part.ok()) << StatusText(part);
  return part.ok() ? part->relocatable : "";
}

TEST(CudaTargets, AreCompletedFromTheArchitecture) {
  EXPECT_EQ(CompleteTargetOf("cuda").ToString(),
            "cuda,mcpu=sm_80,features=+copy_async,vector_bits=128,"
            "max_group=1024,local_bytes=166912,subgroup=32,max_registers=255,"
            "products=bf16x16x8x16+f16x16x8x16+i8x16x8x32");
  EXPECT_EQ(CompleteTargetOf("cuda,mcpu=sm_75").ToString(),
            "cuda,mcpu=sm_75,vector_bits=128,max_group=1024,local_bytes=65536,"
            "subgroup=32,max_registers=255,products=f16x16x8x8+i8x8x8x16");
  EXPECT_EQ(CompleteTargetOf("cuda,products=f16x16x8x16").products,
            std::vector<std::string>{"f16x16x8x16"});
  EXPECT_EQ(CompleteTargetOf("cuda,mcpu=sm_86").local_bytes, 99 << 10);
  const Target given =
      CompleteTargetOf("cuda,mcpu=sm_90,max_group=256,max_registers=128");
  EXPECT_EQ(given.max_group, 256);
  EXPECT_EQ(given.max_registers, 128);
  EXPECT_EQ(*Cuda().Complete(given), given);
}

// Targets know more architectures than the simulator does; what both know they
// must know alike.
TEST(CudaTargets, AgreeWithTheSimulatorAboutLimits) {
  for (const ptxsim::GpuArchitecture& gpu : ptxsim::AllGpuArchitectures()) {
    const Target target =
        CompleteTargetOf(absl::StrCat("cuda,mcpu=sm_", gpu.sm));
    EXPECT_EQ(target.local_bytes, gpu.max_shared_per_block) << gpu.sm;
    EXPECT_EQ(target.max_registers, gpu.max_registers_per_thread) << gpu.sm;
  }
}

TEST(CudaTargets, WhatNoArchitectureHasIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"cuda,mcpu=sm_81", "unknown architecture 'sm_81'; known are sm_75, "},
      {"cuda,local_bytes=300000",
       "local_bytes=300000 is more than the 166912 of sm_80"},
      {"cuda,max_group=2048", "max_group=2048 is more than the 1024"},
      {"cuda,triple=x86_64-linux-gnu", "described by mcpu"},
      {"cuda,features=+images", "features=+images, but sm_80 has "},
      {"cuda,mcpu=sm_75,products=bf16x16x8x16",
       "products=bf16x16x8x16, but sm_75 has f16x16x8x8+i8x8x8x16"}};
  for (const auto& [text, message] : cases) {
    const auto result = CompleteTarget(*ParseTarget(text));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusText(result), HasSubstr(message));
  }
}

TEST(CudaSource, AMapIsThisText) {
  const loop::Program program =
      MapProgram(1000, 4, DType::kF32, {{DType::kF32, [](loop::ValuePtr x) {
                                           return loop::Unary(UnaryOp::kExp, x);
                                         }}});
  EXPECT_EQ(SourceOf(program),
            R"(extern "C" __global__ void __launch_bounds__(64)
k_k0(
    const float* __restrict__ b0_x,
    float* __restrict__ b1_y) {
  const int v0 = (int)blockIdx.x;
  const int v1 = (int)threadIdx.x;
  if ((unsigned int)(v0 * 256 + v1 * 4) < 1000u) {
    const float4 x0 = *(const float4*)(b0_x + v0 * 256 + v1 * 4);
    *(float4*)(b1_y + v0 * 256 + v1 * 4) = make_float4(expf(x0.x), expf(x0.y), expf(x0.z), expf(x0.w));
  }
}
)");
}

TEST(CudaSource, LocalArraysShareOneThatIsGivenAtLaunch) {
  const loop::Program program = TiledMatmul{.dtype = DType::kF16}.Emit();
  const auto part =
      Cuda().GeneratePart(*LowerProgram(program), TensorsOnly(program),
                          CompleteTargetOf("cuda"), "mm");
  ASSERT_STATUS_OK(part);
  // 16 x 8 and 8 x 16 elements of two bytes.
  EXPECT_EQ(part->kernels[0].shared_bytes, 512);
  EXPECT_THAT(part->kernels[0].group, ElementsAre(4, 8));
  EXPECT_THAT(
      part->relocatable,
      HasSubstr(
          "  extern __shared__ __align__(128) unsigned char mm_rg_shared[];\n"
          "  unsigned short* const b3_a_tile = (unsigned short*)"
          "(mm_rg_shared + 0);\n"
          "  unsigned short* const b4_b_tile = (unsigned short*)"
          "(mm_rg_shared + 256);\n"));
}

TEST(CudaSource, MoreGroupsThanADimensionHasAreCountedInTheFirst) {
  for (const DeviceCase& c : DeviceCases()) {
    if (c.name != "ManyOuterGroups") continue;
    const auto part =
        Cuda().GeneratePart(*LowerProgram(c.program), TensorsOnly(c.program),
                            CompleteTargetOf("cuda"), "k");
    ASSERT_STATUS_OK(part);
    EXPECT_THAT(part->kernels[0].grid, ElementsAre(140000));
    EXPECT_THAT(part->relocatable,
                HasSubstr("const int v1 = (int)blockIdx.x % 2;\n"
                          "  const int v0 = (int)blockIdx.x / 2;\n"));
    return;
  }
  FAIL() << "no such case";
}

TEST(CudaSource, AsynchronousCopiesAreInstructionsFromSm80On) {
  const loop::Program program = AsyncCopies().Emit();
  EXPECT_THAT(
      SourceOf(program),
      HasSubstr("  k_rg_copy_async_16(b2_first + v0 * 4, b0_x + v0 * 4, "
                "true);\n"));
  EXPECT_THAT(SourceOf(program), HasSubstr("cp.async.wait_group 1;"));
  for (const char* text : {"cuda,mcpu=sm_75", "opencl"}) {
    const Target target = CompleteTargetOf(text);
    const auto refused = FindCodeGenerator(target.kind)
                             ->GeneratePart(*LowerProgram(program),
                                            TensorsOnly(program), target, "k");
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.status().message()),
                StartsWith("copy_async_16: kernel k0 uses what"));
  }
}

class CudaCompilation : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = cuda::Nvrtc::Load();
    if (!nvrtc.ok()) {
      EXPECT_EQ(nvrtc.status().code(), absl::StatusCode::kUnavailable);
      GTEST_SKIP() << nvrtc.status().message();
    }
    nvrtc_ = *nvrtc;
  }
  const cuda::Nvrtc* nvrtc_ = nullptr;
};

TEST_F(CudaCompilation, AModuleHoldsCodeOfItsArchitectureAndPtx) {
  const Module module =
      BuildFor(TiledMatmul().Emit(), CompleteTargetOf("cuda,mcpu=sm_80"));
  const auto binary = ParseCudaBinary(module.loadable);
  ASSERT_STATUS_OK(binary);
  EXPECT_EQ(binary->arch, "sm_80");
  EXPECT_THAT(binary->cubin, StartsWith("\x7f"
                                        "ELF"));
  EXPECT_THAT(binary->ptx, HasSubstr(".target sm_80"));
  EXPECT_THAT(binary->ptx, HasSubstr(".entry k_k0("));
  EXPECT_EQ(module.relocatable, "");
  EXPECT_EQ(module.compiler_version, CompilerVersionOfKind("cuda"));
  EXPECT_THAT(module.compiler_version, HasSubstr("/NVRTC "));
}

TEST_F(CudaCompilation, NamesOfKernelsStayAsTheyAre) {
  const loop::Program program = TiledMatmul{.dtype = DType::kF16}.Emit();
  for (const std::string name : {"ARG_max", "RG_x"}) {
    const Module module =
        BuildFor(program, CompleteTargetOf("cuda,mcpu=sm_80"), name);
    ASSERT_EQ(module.kernels.size(), 1u);
    EXPECT_EQ(module.kernels[0].entry, name + "_k0");
    const auto binary = ParseCudaBinary(module.loadable);
    ASSERT_STATUS_OK(binary);
    EXPECT_THAT(binary->ptx, HasSubstr(".entry " + name + "_k0("));
  }
}

TEST_F(CudaCompilation, EqualProgramsGiveEqualBytes) {
  const loop::Program program =
      TiledMatmul{.dtype = DType::kF16, .out = DType::kF16}.Emit();
  const Target target = CompleteTargetOf("cuda");
  EXPECT_EQ(BuildFor(program, target).BinaryHash(),
            BuildFor(program, target).BinaryHash());
}

TEST_F(CudaCompilation, EveryCaseCompilesForOldAndNewArchitectures) {
  for (const char* text : {"cuda,mcpu=sm_75", "cuda,mcpu=sm_90"}) {
    for (const DeviceCase& c : DeviceCases()) {
      EXPECT_NE(BuildFor(c.program, CompleteTargetOf(text)).loadable, "")
          << c.name;
    }
  }
}

TEST_F(CudaCompilation, KernelsThatSpillAreRefused) {
  // 16 x 16 sums a thread: 256 registers for them alone.
  const loop::Program program =
      TiledMatmul{.m = 128, .n = 128, .bm = 128, .bn = 128, .rm = 16, .rn = 16}
          .Emit();
  const auto result =
      Cuda().Generate(*LowerProgram(program), TensorsOnly(program),
                      CompleteTargetOf("cuda"), "k");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()),
              StartsWith("registers: kernel k_k0 keeps "));
}

TEST_F(CudaCompilation, KernelsBeyondTheTargetsRegistersAreRefused) {
  const loop::Program program = TiledMatmul().Emit();
  const auto result =
      Cuda().Generate(*LowerProgram(program), TensorsOnly(program),
                      CompleteTargetOf("cuda,max_registers=16"), "k");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the target has 16"));
}

TEST_F(CudaCompilation, WrongSourceIsToldWithTheLog) {
  const auto result = nvrtc_->Compile("extern \"C\" __global__ void k() { x; }",
                                      "sm_80", absl::Seconds(30), RealClock());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusText(result), HasSubstr("identifier \"x\" is undefined"));
}

// Moves on by a second whenever somebody looks at it.
class HurriedClock : public Clock {
 public:
  absl::Time Wall() const override { return absl::UnixEpoch(); }
  SteadyTime Steady() const override {
    return SteadyTime() + absl::Seconds(seconds_++);
  }

 private:
  mutable std::atomic<int> seconds_ = 0;
};

TEST_F(CudaCompilation, WhatTakesTooLongIsStopped) {
  const std::string source =
      SourceOf(TiledMatmul{.bm = 64, .bn = 64, .rm = 8, .rn = 8}.Emit());
  const auto result =
      nvrtc_->Compile(source, "sm_80", absl::Seconds(2), HurriedClock());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(StatusText(result), HasSubstr("longer than 2s"));
}

TEST_F(CudaCompilation, PartsOfALibraryAreCompiledTogether) {
  const loop::Program program = TiledMatmul{.dtype = DType::kBF16}.Emit();
  const Target target = CompleteTargetOf("cuda");
  std::vector<std::string> parts;
  for (const char* name : {"first", "second"}) {
    const auto part = Cuda().GeneratePart(*LowerProgram(program),
                                          TensorsOnly(program), target, name);
    ASSERT_STATUS_OK(part);
    EXPECT_EQ(part->loadable, "");
    parts.push_back(part->relocatable);
  }
  const auto library = Cuda().LinkLibrary(parts, target);
  ASSERT_STATUS_OK(library);
  const auto binary = ParseCudaBinary(*library);
  ASSERT_STATUS_OK(binary);
  EXPECT_THAT(binary->ptx, HasSubstr(".entry first_k0("));
  EXPECT_THAT(binary->ptx, HasSubstr(".entry second_k0("));
}

}  // namespace
}  // namespace regatta

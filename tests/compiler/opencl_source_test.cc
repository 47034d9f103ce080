// OpenCL C as text, and the targets of its generator: no OpenCL is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/random.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/compile.h"
#include "compiler/lower/lower.h"
#include "compiler/ops/op.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/device_cases.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/status_text.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const CodeGenerator& OpenCl() { return *FindCodeGenerator("opencl"); }

std::string SourceOf(const loop::Program& program,
                     const std::string& target = "opencl") {
  return BuildFor(program, CompleteTargetOf(target)).loadable;
}

TEST(OpenClTargets, AreCompletedWithWhatNearlyEveryDeviceHas) {
  EXPECT_EQ(CompleteTargetOf("opencl").ToString(),
            "opencl,vector_bits=128,max_group=256,local_bytes=32768");
  const Target given = CompleteTargetOf(
      "opencl,features=+cl_khr_fp16,vector_bits=64,max_group=1024,"
      "local_bytes=16384,subgroup=16,image_width=16384,image_height=8192");
  EXPECT_EQ(*OpenCl().Complete(given), given);
  EXPECT_EQ(given.max_group, 1024);
}

TEST(OpenClTargets, FieldsOfProcessorsAreRefused) {
  for (const char* text :
       {"opencl,mcpu=znver4", "opencl,triple=x86_64-linux-gnu",
        "opencl,vector_registers=32", "opencl,max_registers=255"}) {
    const auto result = CompleteTarget(*ParseTarget(text));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusText(result), HasSubstr("its driver knows the rest"));
  }
  EXPECT_THAT(StatusText(CompleteTarget(*ParseTarget("opencl,image_width=8"))),
              HasSubstr("image_width and image_height go together"));
  EXPECT_THAT(StatusText(CompleteTarget(*ParseTarget("opencl,features=-x"))),
              HasSubstr("feature '-x' is taken away"));
  EXPECT_THAT(StatusText(CompleteTarget(*ParseTarget("opencl,vector_bits=24"))),
              HasSubstr("not a power of two"));
}

TEST(OpenClTargets, TheVersionIsTheCompilersOwn) {
  EXPECT_EQ(CompilerVersion(CompleteTargetOf("opencl")),
            CompilerVersionOfKind("opencl"));
  EXPECT_THAT(CompilerVersionOfKind("opencl"), HasSubstr("/OpenCL C 1.2"));
  EXPECT_EQ(OpenCl().Host().status().code(), absl::StatusCode::kUnavailable);
}

TEST(OpenClSource, EqualProgramsGiveEqualText) {
  for (const DeviceCase& c : DeviceCases()) {
    EXPECT_EQ(SourceOf(c.program), SourceOf(c.program)) << c.name;
  }
}

TEST(OpenClSource, AMapIsThisText) {
  const loop::Program program =
      MapProgram(1000, 4, DType::kF32,
                 {{DType::kF32, [](loop::ValuePtr x) {
                     return loop::Binary(BinaryOp::kMax, x, loop::Const(0.5));
                   }}});
  EXPECT_EQ(SourceOf(program), R"(float k_rg_max(float a, float b) {
  return a > b || a != a ? a : b;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_k0(
    __global const float* restrict b0_x,
    __global float* restrict b1_y) {
  const int v0 = (int)get_group_id(0);
  const int v1 = (int)get_local_id(0);
  if ((unsigned int)(v0 * 256 + v1 * 4) < 1000u) {
    const float4 x0 = *(__global const float4*)(b0_x + v0 * 256 + v1 * 4);
    *(__global float4*)(b1_y + v0 * 256 + v1 * 4) = (float4)(k_rg_max(x0.s0, 0.5f), k_rg_max(x0.s1, 0.5f), k_rg_max(x0.s2, 0.5f), k_rg_max(x0.s3, 0.5f));
  }
}
)");
}

TEST(OpenClSource, AModuleSaysHowToLaunchItsKernels) {
  const loop::Program program = TiledMatmul{.m = 50, .n = 70, .k = 8}.Emit();
  const Module module = BuildFor(program, CompleteTargetOf("opencl"), "mm");
  EXPECT_EQ(module.target,
            "opencl,vector_bits=128,max_group=256,local_bytes=32768");
  ASSERT_EQ(module.kernels.size(), 1u);
  EXPECT_EQ(module.kernels[0].entry, "mm_k0");
  EXPECT_THAT(module.kernels[0].arguments, ElementsAre(0, 1, 2));
  // 16 x 16 tiles: columns are dimension 0.
  EXPECT_THAT(module.kernels[0].grid, ElementsAre(5, 4));
  EXPECT_THAT(module.kernels[0].group, ElementsAre(4, 8));
  EXPECT_EQ(module.kernels[0].shared_bytes, 0);
  EXPECT_EQ(module.workspace_bytes, 0);
  ASSERT_EQ(module.buffers.size(), 3u);
  for (const ModuleBuffer& buffer : module.buffers) {
    EXPECT_EQ(buffer.space, MemorySpace::kDevice);
    EXPECT_EQ(buffer.alignment, 64);
  }
  EXPECT_EQ(module.relocatable, "");
}

TEST(OpenClSource, WorkspaceIsAnAllocationOfItsOwn) {
  for (const DeviceCase& c : DeviceCases()) {
    if (c.name != "ThreeKernels") continue;
    const Module module = BuildFor(c.program, CompleteTargetOf("opencl"));
    const auto workspace = module.BuffersWithRole(BufferRole::kWorkspace);
    ASSERT_EQ(workspace.size(), 2u);
    EXPECT_EQ(workspace[0]->bytes, 96 * 4);
    EXPECT_EQ(workspace[1]->bytes, 4);
    EXPECT_EQ(workspace[1]->workspace_offset, 0);
    // The second kernel is one thread's; what only it reads is const there.
    EXPECT_THAT(module.kernels[1].grid, ElementsAre(1));
    EXPECT_THAT(module.kernels[1].group, ElementsAre(1));
    EXPECT_THAT(module.loadable,
                HasSubstr("__global const int* restrict b2_s,\n"
                          "    __global int* restrict b3_total)"));
    return;
  }
  FAIL() << "no such case";
}

TEST(OpenClSource, HalfIsATypeWhereTheDeviceHasIt) {
  const loop::Program program =
      TiledMatmul{.dtype = DType::kF16, .out = DType::kF16}.Emit();
  const std::string plain = SourceOf(program);
  EXPECT_THAT(plain, HasSubstr("vload_half(0, (const __private half*)&bits)"));
  EXPECT_THAT(plain, HasSubstr("__local unsigned short b3_a_tile"));
  EXPECT_THAT(plain, Not(HasSubstr("cl_khr_fp16")));
  const std::string extended =
      SourceOf(program, "opencl,features=+cl_khr_fp16");
  EXPECT_THAT(extended,
              StartsWith("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"));
  EXPECT_THAT(extended, HasSubstr("return convert_half_rte(x);"));
  EXPECT_THAT(extended, HasSubstr("__local half b3_a_tile"));
  // The program's sums are f32.
  EXPECT_THAT(extended, HasSubstr("((float)"));
  // Staging moves bits.
  EXPECT_THAT(plain, HasSubstr("const unsigned short x0 = "));
}

TEST(OpenClSource, BarriersOrderGlobalMemoryWhereThreadsMeetThere) {
  EXPECT_THAT(SourceOf(TiledMatmul().Emit()),
              Not(HasSubstr("CLK_GLOBAL_MEM_FENCE")));
  ProgramWriter w;
  const int y = w.Add("y", loop::Scope::kOutput, DType::kF32, 64);
  const int s = w.Add("s", loop::Scope::kWorkspace, DType::kF32, 64);
  const int t = w.Var();
  w.Kernel(loop::For(
      t, 64, loop::LoopKind::kThread,
      loop::Block({loop::Store(s, V(t), loop::Const(1)), loop::Barrier(),
                   loop::Store(y, V(t), w.Load(s, V(t, -1) + Affine(63)))})));
  EXPECT_THAT(
      SourceOf(w.program),
      HasSubstr("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"));
}

TEST(OpenClSource, OffsetsAreWideOnlyWhereTheyHaveToBe) {
  ProgramWriter w;
  constexpr int64_t kRow = int64_t{1} << 20;
  const int x = w.Add("x", loop::Scope::kInput, DType::kI8, 4096 * kRow);
  const int y = w.Add("y", loop::Scope::kOutput, DType::kI8, 4096);
  const int g = w.Var();
  w.Kernel(loop::For(g, 4096, loop::LoopKind::kGroup,
                     loop::Store(y, V(g), w.Load(x, V(g, kRow)))));
  const std::string source = SourceOf(w.program);
  EXPECT_THAT(source, HasSubstr("b0_x[(long)v0 * 1048576]"));
  EXPECT_THAT(source, HasSubstr("b1_y[v0] ="));
}

TEST(OpenClSource, WhatATargetHasNotIsRefusedByTheNameOfTheLimit) {
  const auto refusal = [](const loop::Program& program,
                          const std::string& target) {
    const auto result =
        OpenCl().Generate(*LowerProgram(program), TensorsOnly(program),
                          CompleteTargetOf(target), "k");
    EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(result.status().message());
  };
  const loop::Program matmul = TiledMatmul().Emit();
  EXPECT_EQ(refusal(matmul, "opencl,max_group=16"),
            "max_group: kernel k0 has 32 work-items in a group, the target 16");
  EXPECT_EQ(refusal(matmul, "opencl,local_bytes=512"),
            "local_bytes: kernel k0 has 1024 bytes of memory in a group, the "
            "target 512");
  const loop::Program wide =
      MapProgram(64, 1, DType::kF32,
                 {{DType::kF32, [](loop::ValuePtr x) {
                     return loop::Cast(loop::Cast(x, DType::kF64), DType::kF32);
                   }}});
  EXPECT_THAT(refusal(wide, "opencl"), StartsWith("cl_khr_fp64: kernel k0"));
  EXPECT_THAT(SourceOf(wide, "opencl,features=+cl_khr_fp64"),
              HasSubstr("#pragma OPENCL EXTENSION cl_khr_fp64 : enable"));
}

Module ModuleOf(const std::string& workload, const Target& target,
                const std::string& schedule) {
  const auto space = CreateSpace(*ParseWorkload(workload), target, 1);
  EXPECT_TRUE(space.ok()) << StatusText(space);
  const auto module = Compile(*space, schedule, "k");
  EXPECT_TRUE(module.ok()) << StatusText(module);
  return module.ok() ? *module : Module();
}

constexpr const char* kPhone =
    "opencl,features=+cl_khr_fp16,image_width=4096,image_height=4096";

TEST(OpenClSource, AnImageIsWrittenByOneKernelAndReadByTheNext) {
  const Module module =
      ModuleOf("matmul(m=64,n=128,k=32)", CompleteTargetOf(kPhone),
               "tiles{vec=4,vectors=1,rows=2,tx=8,ty=8,local=none,kc=4,"
               "unroll=1,pad=0,b_from=image}");
  ASSERT_EQ(module.kernels.size(), 2u);
  EXPECT_THAT(module.loadable,
              AllOf(HasSubstr("__write_only image2d_t b4_B_image"),
                    HasSubstr("write_imagef(b4_B_image, (int2)("),
                    HasSubstr("__read_only image2d_t b4_B_image"),
                    HasSubstr("read_imagef(b4_B_image, (int2)(")));
  // Columns are known to stay in their row: nothing is divided.
  EXPECT_THAT(module.loadable, Not(HasSubstr(" / 32")));
  ASSERT_EQ(module.buffers.size(), 4u);
  EXPECT_EQ(module.buffers[3].image_width, 128 / 4);
  EXPECT_EQ(module.buffers[3].image_height, 32);
  EXPECT_EQ(*DeserializeModule(SerializeModule(module))
                 ->BuffersWithRole(BufferRole::kWorkspace)[0]
                 ->shape.begin(),
            128 * 32);
}

// What no driver here can run still is OpenCL C to a compiler that knows it.
TEST(OpenClSource, CodeForPhonesIsOpenClC) {
  if (std::system("command -v clang >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no clang here";
  }
  const Target target = CompleteTargetOf(kPhone);
  const std::string folder = ::testing::TempDir();
  Random random(3);
  int checked = 0;
  for (const char* text :
       {"matmul(m=33,n=48,k=70,dtype=f16)",
        "dense(m=9,n=44,k=21,activation=gelu,dtype=f16)",
        "conv2d(n=1,h=9,w=7,ci=6,co=12,kh=3,kw=3,pad=1,dtype=f16)",
        "softmax(rows=9,cols=33,dtype=f16)", "transpose(shape=17x35,perm=1x0)",
        "reduce(shape=9x33,axes=1,kind=max,dtype=f16)"}) {
    const auto space = CreateSpace(*ParseWorkload(text), target, 1);
    ASSERT_STATUS_OK(space);
    for (int i = 0; i < Scaled(2); ++i) {
      const std::string schedule = space->Print(space->Sample(random).value());
      const std::string path = folder + "phone.cl";
      std::ofstream(path) << Compile(*space, schedule, "k")->loadable;
      EXPECT_EQ(std::system(("clang -x cl -cl-std=CL1.2 -target spir64 "
                             "-Xclang -finclude-default-header -Werror "
                             "-fsyntax-only " +
                             path)
                                .c_str()),
                0)
          << text << " " << schedule;
      ++checked;
    }
  }
  EXPECT_GE(checked, 12);
}

TEST(OpenClSource, PartsOfALibraryStandBesideEachOther) {
  const loop::Program program =
      MapProgram(8, 1, DType::kF32, {{DType::kF32, [](loop::ValuePtr x) {
                                        return loop::Binary(BinaryOp::kMin, x,
                                                            loop::Const(1));
                                      }}});
  const Target target = CompleteTargetOf("opencl");
  std::vector<std::string> parts;
  for (const char* name : {"first", "second"}) {
    const auto part = OpenCl().GeneratePart(*LowerProgram(program),
                                            TensorsOnly(program), target, name);
    ASSERT_STATUS_OK(part);
    EXPECT_EQ(part->loadable, "");
    parts.push_back(part->relocatable);
  }
  const auto library = OpenCl().LinkLibrary(parts, target);
  ASSERT_STATUS_OK(library);
  for (const char* name : {"first_rg_min(float", "second_rg_min(float",
                           "first_k0(", "second_k0("}) {
    EXPECT_THAT(*library, HasSubstr(name));
  }
}

// Whatever a library is called, its kernels are what the module says.
TEST(OpenClSource, NamesOfKernelsStayAsTheyAre) {
  const loop::Program program =
      MapProgram(8, 1, DType::kF32, {{DType::kF32, [](loop::ValuePtr x) {
                                        return loop::Binary(BinaryOp::kMax, x,
                                                            loop::Const(1));
                                      }}});
  for (const std::string name : {"ARG_max", "RG_x", "xRG_", "RG_rg_"}) {
    const Module module = BuildFor(program, CompleteTargetOf("opencl"), name);
    ASSERT_EQ(module.kernels.size(), 1u);
    EXPECT_EQ(module.kernels[0].entry, name + "_k0");
    EXPECT_THAT(module.loadable, HasSubstr("\nvoid " + name + "_k0("));
    EXPECT_THAT(module.loadable, StartsWith("float " + name + "_rg_max("));
    EXPECT_THAT(module.loadable, HasSubstr("= " + name + "_rg_max("));
    EXPECT_THAT(module.loadable, Not(HasSubstr("@")));
  }
}

// The helpers of one module are no other's, also where one name begins with the
// other.
TEST(OpenClSource, HelpersOfModulesOfALibraryHaveNamesOfTheirOwn) {
  const loop::Program program = MapProgram(
      8, 1, DType::kF16, {{DType::kF16, [](loop::ValuePtr x) {
                             return loop::Binary(BinaryOp::kAdd, x, x);
                           }}});
  const auto helpers = [&](const std::string& name) {
    const Module module = BuildFor(program, CompleteTargetOf("opencl"), name);
    std::set<std::string> found;
    for (const char* helper : {"f16(", "to_f16("}) {
      for (const char* before : {"float ", "unsigned short "}) {
        const std::string text = name + "_rg_" + helper;
        if (absl::StrContains(module.loadable, before + text)) {
          found.insert(text);
        }
      }
    }
    EXPECT_EQ(found.size(), 2u) << module.loadable;
    return found;
  };
  std::set<std::string> all = helpers("a");
  all.merge(helpers("a_to"));
  EXPECT_EQ(all.size(), 4u);
}

TEST(OpenClSource, ProgramsForProcessorsAreRefusedThereAndTheReverse) {
  const loop::Program device = TiledMatmul().Emit();
  const auto cpu = FindCodeGenerator("cpu")->Generate(
      *LowerProgram(device), TensorsOnly(device), HostForTests(), "k");
  EXPECT_EQ(cpu.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(StatusText(cpu), HasSubstr("a device with groups of threads"));
  ProgramWriter w(2);
  const int y = w.Add("y", loop::Scope::kOutput, DType::kF32, 8);
  const int s = w.Add("s", loop::Scope::kWorkspace, DType::kF32, 1);
  w.program.buffers[s].per_thread = true;
  const int p = w.Var();
  w.Kernel(
      loop::For(p, 8, loop::LoopKind::kParallel,
                loop::Block({loop::Store(s, Affine(0), loop::Const(1)),
                             loop::Store(y, V(p), w.Load(s, Affine(0)))})));
  const auto opencl =
      OpenCl().Generate(*LowerProgram(w.program), TensorsOnly(w.program),
                        CompleteTargetOf("opencl"), "k");
  EXPECT_EQ(opencl.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(StatusText(opencl), HasSubstr("one per thread of a processor"));
}

}  // namespace
}  // namespace regatta

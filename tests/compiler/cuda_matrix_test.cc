// Schedules for tensor cores, compiled by NVRTC and run by the PTX simulator:
// exact on whole numbers, counters as theory says, planted faults found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/compile.h"
#include "compiler/lower/lower.h"
#include "compiler/ops/op.h"
#include "compiler/ptxsim/cost_model.h"
#include "compiler/ptxsim/gpu_architecture.h"
#include "compiler/space/rules/device/matrix_tiles_emitter.h"
#include "tests/compiler/cuda_run.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/status_text.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

using ptxsim::InstructionClass;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kSm80 = "cuda,mcpu=sm_80";
constexpr const char* kRule = "matrix_tiles";

class CudaMatrix : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = cuda::Nvrtc::Load();
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  }
};

Space SpaceFor(const std::string& workload, const std::string& target) {
  const auto parsed = ParseWorkload(workload);
  CHECK(parsed.ok()) << parsed.status();
  const auto space = CreateSpace(*parsed, CompleteTargetOf(target), 1);
  CHECK(space.ok()) << space.status();
  return *space;
}

bool UsesRule(const Space& space, const Schedule& schedule,
              const std::string& rule) {
  return space.Print(schedule).rfind(rule, 0) == 0;
}

Schedule SampleOf(const Space& space, const std::string& rule, Random& random) {
  for (int i = 0; i < Space::kAttempts; ++i) {
    const std::optional<Schedule> schedule = space.Sample(random);
    if (schedule && UsesRule(space, *schedule, rule)) return *schedule;
  }
  CHECK(false) << "no schedule of " << rule;
}

// Whole numbers in [-4, 4]: their sums are exact in every order.
std::vector<TensorValues> SmallInputs(const Workload& workload) {
  Random random(23);
  std::vector<TensorValues> inputs;
  for (const int id : workload.TensorsWithRole(TensorRole::kInput)) {
    TensorValues values(workload.tensors[id].Elements());
    for (double& value : values) {
      value = static_cast<double>(random.Below(9)) - 4;
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

absl::StatusOr<SimulatedRun> RunSchedule(
    const Space& space, const Schedule& schedule,
    const ptxsim::RunOptions& options = {}) {
  ASSIGN_OR_RETURN(const Module module,
                   Compile(space, space.Print(schedule), "k"));
  return SimulateModule(module, SmallInputs(space.context().workload), options);
}

// The default and `count` random schedules of `rule` give exactly what the
// interpreter makes of the expression. Returns how many NVRTC refused for want
// of registers.
int ExpectExactSchedules(const std::string& workload, const std::string& target,
                         const std::string& rule, int count, uint64_t seed) {
  const Space space = SpaceFor(workload, target);
  const auto expected = Interpret(space.context().workload,
                                  SmallInputs(space.context().workload));
  Random random(seed);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const Schedule schedule = i == 0 && UsesRule(space, space.Default(), rule)
                                  ? space.Default()
                                  : SampleOf(space, rule, random);
    SCOPED_TRACE(
        absl::StrCat(workload, " ", target, " ", space.Print(schedule)));
    const auto run = RunSchedule(space, schedule);
    if (run.status().code() == absl::StatusCode::kFailedPrecondition) {
      EXPECT_THAT(std::string(run.status().message()),
                  StartsWith("registers: "));
      EXPECT_GT(i, 0) << "a default";
      ++refused;
      continue;
    }
    EXPECT_TRUE(run.ok()) << StatusText(run);
    if (!run.ok()) break;
    EXPECT_EQ(run->fault, "");
    EXPECT_EQ(run->outputs, expected);
    if (::testing::Test::HasFailure()) break;
  }
  return refused;
}

TEST_F(CudaMatrix, SchedulesAreExact) {
  const char* const workloads[] = {
      "matmul(m=48,n=72,k=80,dtype=f16)",
      "matmul(m=33,n=29,k=51,dtype=f16,out_dtype=f32)",
      "matmul(m=5,n=3,k=7,dtype=f16)",
      "matmul(m=40,n=56,k=96,dtype=i8)",
      "matmul(m=19,n=45,k=35,dtype=i8)",
      "dense(m=24,n=40,k=64,dtype=f16,activation=relu)",
      "batch_matmul(b=3,m=17,n=24,k=40,dtype=f16)",
      "conv2d(n=2,h=9,w=7,ci=16,co=24,kh=3,kw=3,pad=1,dtype=f16)",
      "conv2d(n=1,h=8,w=9,ci=5,co=6,kh=3,kw=2,stride=2,pad=1,dtype=f16)",
      "conv2d(n=2,h=6,w=8,ci=16,co=16,kh=3,kw=3,pad=1,dtype=i8)",
      "C[i,j] = sum(k) A[k,i] * B[j,k] where i=40, j=48, k=64, dtype=f16"};
  int ran = 0, refused = 0;
  uint64_t seed = 1;
  for (const char* target : {kSm80, "cuda,mcpu=sm_75", "cuda,mcpu=sm_90"}) {
    for (const char* workload : workloads) {
      const int count = Scaled(target == kSm80 ? 2 : 1);
      refused += ExpectExactSchedules(workload, target, kRule, count, ++seed);
      ran += count;
      if (HasFailure()) return;
    }
  }
  for (const char* target : {kSm80, "cuda,mcpu=sm_90"}) {
    refused +=
        ExpectExactSchedules("matmul(m=64,n=40,k=72,dtype=bf16,out_dtype=f32)",
                             target, kRule, Scaled(2), ++seed);
    ran += Scaled(2);
  }
  std::printf("%d schedules ran, %d were refused for their registers\n",
              ran - refused, refused);
  EXPECT_GE(ran, 4 * refused);
}

// What has no block for a type meets it with plain schedules.
TEST_F(CudaMatrix, PlainSchedulesStandBeside) {
  for (const auto& [workload, target, rule] :
       {std::tuple("matmul(m=64,n=64,k=64,dtype=f16)", kSm80, kRule),
        std::tuple("matmul(m=64,n=64,k=64,dtype=bf16)", kSm80, kRule),
        std::tuple("matmul(m=64,n=64,k=64,dtype=i8)", kSm80, kRule),
        std::tuple("matmul(m=64,n=64,k=64,dtype=f16)", "cuda,mcpu=sm_75",
                   kRule),
        std::tuple("matmul(m=64,n=64,k=64,dtype=bf16)", "cuda,mcpu=sm_75",
                   "tiles"),
        std::tuple("matmul(m=64,n=64,k=64)", kSm80, "tiles"),
        std::tuple("matmul(m=64,n=64,k=64,dtype=f16)",
                   "cuda,products=i8x16x8x32", "tiles")}) {
    const Space space = SpaceFor(workload, target);
    EXPECT_TRUE(UsesRule(space, space.Default(), rule))
        << workload << " " << target << " " << space.Print(space.Default());
  }
  for (const char* workload :
       {"matmul(m=40,n=24,k=48,dtype=f16)", "matmul(m=40,n=24,k=48)"}) {
    ExpectExactSchedules(workload, kSm80, "tiles", Scaled(1), 5);
  }
}

// Every block of products once, however the schedule cuts them; copies and
// loads of matrices without conflicts between banks.
TEST_F(CudaMatrix, CountersAreThoseOfTheory) {
  constexpr uint64_t kMacs = 128 * 128 * 128;
  const Space space = SpaceFor("matmul(m=128,n=128,k=128,dtype=f16)", kSm80);
  Random random(11);
  for (int i = 0; i < Scaled(3); ++i) {
    const Schedule schedule =
        i == 0 ? space.Default() : SampleOf(space, kRule, random);
    SCOPED_TRACE(space.Print(schedule));
    const auto run = RunSchedule(space, schedule);
    ASSERT_TRUE(run.ok()) << StatusText(run);
    ASSERT_EQ(run->fault, "");
    const ptxsim::Counters& counters = run->kernels[0].report.counters;
    EXPECT_EQ(counters.matrix_macs_f16, kMacs);
    EXPECT_EQ(counters.Of(InstructionClass::kMatrix), kMacs / (16 * 8 * 16));
  }
  const auto bytes = RunSchedule(
      SpaceFor("matmul(m=128,n=128,k=128,dtype=i8)", kSm80),
      SpaceFor("matmul(m=128,n=128,k=128,dtype=i8)", kSm80).Default());
  ASSERT_TRUE(bytes.ok()) << StatusText(bytes);
  EXPECT_EQ(bytes->kernels[0].report.counters.matrix_macs_int8, kMacs);
}

// Passes over the banks for each request to shared memory: four when 32 threads
// move 16 bytes each.
double PassesPerRequest(const Space& space, const loop::Program& program) {
  const auto run = SimulateModule(BuildFor(program, space.context().target),
                                  SmallInputs(space.context().workload));
  EXPECT_TRUE(run.ok()) << StatusText(run);
  if (!run.ok()) return 0;
  EXPECT_EQ(run->fault, "");
  const ptxsim::Counters& counters = run->kernels[0].report.counters;
  return static_cast<double>(counters.shared_wavefronts) /
         static_cast<double>(counters.shared_requests);
}

TEST_F(CudaMatrix, TheSwizzleLeavesNoConflicts) {
  for (const char* operands : {"A[i,k] * B[k,j]", "A[k,i] * B[j,k]"}) {
    for (const char* depth : {"16", "32", "64"}) {
      const Space space =
          SpaceFor(absl::StrCat("C[i,j] = sum(k) ", operands,
                                " where i=64, j=64, k=64, dtype=f16"),
                   kSm80);
      const auto schedule = space.Parse(
          absl::StrCat("matrix_tiles{bm=64,bn=64,bk=", depth,
                       ",wm=32,wn=32,stages=1,split=1,raster=1,ahead=0}"));
      ASSERT_STATUS_OK(schedule);
      loop::Program program = space.Emit(*schedule);
      SCOPED_TRACE(absl::StrCat(operands, " depth ", depth));
      EXPECT_EQ(PassesPerRequest(space, program), 4);
      if (std::string(depth) != "64") continue;
      for (loop::Buffer& buffer : program.buffers) buffer.swizzle = 0;
      EXPECT_GT(PassesPerRequest(space, program), 8);
    }
  }
}

// `from` of the kernel's source replaced, and run; "wrong result" where nothing
// else was found.
std::string Planted(const std::string& from, const std::string& to,
                    int64_t fewer_bytes = 0) {
  const Space space = SpaceFor("matmul(m=64,n=64,k=128,dtype=f16)", kSm80);
  const std::string text =
      "matrix_tiles{bm=64,bn=64,bk=32,wm=32,wn=32,stages=3,split=1,raster=1,"
      "ahead=1}";
  const Target& target = space.context().target;
  auto module = CompilePart(space, text, "k");
  EXPECT_TRUE(module.ok()) << StatusText(module);
  if (!module.ok()) return "";
  EXPECT_THAT(module->relocatable, HasSubstr(from));
  const std::string source =
      absl::StrReplaceAll(module->relocatable, {{from, to}});
  const auto code = FindCodeGenerator("cuda")->LinkLibrary({source}, target);
  EXPECT_TRUE(code.ok()) << StatusText(code);
  if (!code.ok()) return "";
  module->loadable = *code;
  module->kernels[0].shared_bytes -= fewer_bytes;
  const auto inputs = SmallInputs(space.context().workload);
  const auto run = SimulateModule(*module, inputs);
  EXPECT_TRUE(run.ok()) << StatusText(run);
  if (!run.ok()) return "";
  if (!run->fault.empty()) return run->fault;
  return run->outputs == Interpret(space.context().workload, inputs)
             ? "clean"
             : "wrong result";
}

TEST_F(CudaMatrix, PlantedFaultsAreNamed) {
  EXPECT_EQ(Planted("__syncthreads();", "__syncthreads();"), "clean");
  EXPECT_THAT(Planted("__syncthreads();", ""), StartsWith("shared_race"));
  EXPECT_THAT(Planted("cp.async.wait_group 1;", ""),
              StartsWith("async_not_awaited"));
  EXPECT_THAT(Planted("cp.async.wait_group 1;", "cp.async.wait_group 2;"),
              StartsWith("async_not_awaited"));
  EXPECT_THAT(Planted("__syncthreads();", "__syncthreads();", 1024),
              StartsWith("shared_out_of_bounds"));
  // Rows of A's tile are 32 elements apart for copies, 36 for loads.
  EXPECT_THAT(Planted(" * 32 + ", " * 36 + "), StartsWith("misaligned"));
}

TEST_F(CudaMatrix, WhatSpillsIsRefused) {
  // 128 * 128 sums of a warp: 512 registers of a thread for them alone. The
  // constraint knows; without it NVRTC finds out.
  const Space space = SpaceFor("matmul(m=128,n=128,k=64,dtype=f16)", kSm80);
  const auto schedule = space.Parse(
      "matrix_tiles{bm=128,bn=128,bk=32,wm=128,wn=128,stages=1,split=1,"
      "raster=1,ahead=0}");
  ASSERT_STATUS_OK(schedule);
  EXPECT_THAT(space.Refusal(*schedule).value_or(""), StartsWith("registers: "));
  const Workload& workload = space.context().workload;
  const Target& target = space.context().target;
  const auto shape = MatchMatrixTiles(workload, target, 0);
  ASSERT_TRUE(shape.has_value());
  const MatrixTiling tiling{.rows = 128,
                            .columns = 128,
                            .warp_rows = 128,
                            .warp_columns = 128,
                            .depth = 32};
  LoopBuilder out(workload, 1);
  MatrixTilesEmitter(*shape, tiling, 1, true, out).Emit();
  const auto built = FindCodeGenerator("cuda")->Generate(
      *LowerProgram(out.Finish()), workload, target, "k");
  EXPECT_EQ(built.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(StatusText(built), HasSubstr("registers: kernel k_"));
}

TEST_F(CudaMatrix, AProductOf256IsSimulatedInTenthsOfASecond) {
  const Space space = SpaceFor("matmul(m=256,n=256,k=256,dtype=f16)", kSm80);
  const std::string text = space.Print(space.Default());
  const auto module = Compile(space, text, "k");
  ASSERT_STATUS_OK(module);
  const auto inputs = SmallInputs(space.context().workload);
  double best = 10;
  for (int i = 0; i < 3; ++i) {
    const absl::Time start = absl::Now();
    const auto run = SimulateModule(*module, inputs);
    best = std::min(best, absl::ToDoubleSeconds(absl::Now() - start));
    ASSERT_STATUS_OK(run);
    EXPECT_EQ(run->fault, "");
  }
  std::printf("%s: %.3f s\n", text.c_str(), best);
  EXPECT_LT(best, 0.5);
}

// An A100 in the model: cycles of all launches, and what bounds the first.
struct Modelled {
  double cycles = 0;
  std::string bound;
};
Modelled OnA100(SimulatedRun run, uint64_t load_sectors,
                uint64_t store_sectors) {
  // Of all blocks, also where only some of them ran.
  ptxsim::Counters& first = run.kernels[0].report.counters;
  first.footprint_load_sectors = load_sectors;
  first.footprint_store_sectors = store_sectors;
  const ptxsim::SimulatedGpu gpu = {
      .architecture = *ptxsim::FindGpuArchitecture(80),
      .processors = 108,
      .clock_hz = 1'410'000'000,
      .memory_bytes_per_second = 1'555'000'000'000};
  Modelled modelled;
  for (const auto& kernel : run.kernels) {
    const auto cost = ptxsim::EstimateCost(
        gpu, kernel.block, kernel.report.blocks, kernel.report.counters);
    EXPECT_TRUE(cost.ok()) << StatusText(cost);
    if (!cost.ok()) break;
    modelled.cycles += cost->cycles;
    if (modelled.bound.empty()) modelled.bound = std::string(cost->bound);
  }
  return modelled;
}

// The model's cycles of the default and of the best of some random schedules.
TEST_F(CudaMatrix, TensorCoresBeatPlainSchedulesInTheModel) {
  struct Row {
    double cycles = 0;
    std::string text, bound;
  };
  const Space space = SpaceFor("matmul(m=512,n=512,k=512,dtype=f16)", kSm80);
  constexpr ptxsim::RunOptions kSample = {.sampled_blocks = 4};
  constexpr uint64_t kSectors = 512 * 512 * 2 / 32;  // of a matrix
  const auto best_of = [&](const std::string& rule, int count, Row best = {}) {
    Random random(31);
    for (int i = 0; i < count; ++i) {
      const Schedule schedule = SampleOf(space, rule, random);
      const auto run = RunSchedule(space, schedule, kSample);
      if (run.status().code() == absl::StatusCode::kFailedPrecondition) {
        continue;
      }
      EXPECT_TRUE(run.ok()) << StatusText(run);
      if (!run.ok()) return best;
      const Modelled modelled = OnA100(*run, 2 * kSectors, kSectors);
      if (best.cycles != 0 && modelled.cycles >= best.cycles) continue;
      best = {modelled.cycles, space.Print(schedule), modelled.bound};
    }
    return best;
  };
  const auto first_of = [&](const std::string& rule) {
    for (const Schedule& schedule : space.Seeds()) {
      if (!UsesRule(space, schedule, rule)) continue;
      const auto run = RunSchedule(space, schedule, kSample);
      EXPECT_TRUE(run.ok()) << StatusText(run);
      if (!run.ok()) break;
      const Modelled modelled = OnA100(*run, 2 * kSectors, kSectors);
      return Row{modelled.cycles, space.Print(schedule), modelled.bound};
    }
    return Row();
  };
  const int count = Scaled(3);
  for (const char* rule : {kRule, "tiles"}) {
    for (const auto& [name, row] :
         {std::pair(std::string("default"), first_of(rule)),
          std::pair(absl::StrCat("best of ", count), best_of(rule, count))}) {
      std::printf("%-12s %-10s %9.0f cycles, %s: %s\n", rule, name.c_str(),
                  row.cycles, row.bound.c_str(), row.text.c_str());
    }
  }
  const double tensor = first_of(kRule).cycles,
               plain = first_of("tiles").cycles;
  EXPECT_GT(tensor, 0);
  EXPECT_LT(4 * tensor, plain);
}

}  // namespace
}  // namespace regatta

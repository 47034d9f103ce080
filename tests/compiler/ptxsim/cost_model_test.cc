// Occupancy against values worked out by hand from the programming guide; the
// cost model against its formulae and against what must hold of any model.
#include "compiler/ptxsim/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ptxsim/cubin.h"
#include "tests/compiler/ptxsim/kernel_launch.h"
#include "tests/compiler/ptxsim/matmul_kernels.h"

namespace regatta::ptxsim {
namespace {

using ::testing::HasSubstr;

GpuArchitecture Sm(int sm) { return FindGpuArchitecture(sm).value(); }

TEST(OccupancyTest, EachLimitDecides) {
  struct Case {
    int sm;
    BlockResources block;
    int blocks;
    const char* limiter;
  };
  const Case cases[] = {
      // 32 warps each: two fill the 64 of sm_80.
      {80, {1024, 32, 0}, 2, "warps"},
      // 48 warps of sm_86 hold six blocks of 8.
      {86, {256, 32, 0}, 6, "warps"},
      // One-warp blocks: as many as a processor takes.
      {80, {32, 16, 0}, 32, "blocks"},
      {86, {32, 16, 0}, 16, "blocks"},
      // 128 registers: 4096 a warp, 4 warps in each of 4 parts, 16 in all.
      {80, {128, 128, 0}, 4, "registers"},
      // 72 registers are 2304 a warp: 7 in each part, 28 warps, 3 blocks of 8.
      {90, {256, 72, 0}, 3, "registers"},
      // 48 kB and 1 kB reserved: three in 164 kB.
      {80, {128, 32, 48 << 10}, 3, "shared"},
      {75, {128, 32, 32 << 10}, 2, "shared"},
      {90, {128, 168, 227 << 10}, 1, "shared"},
      {89, {128, 32, 0}, 12, "warps"},
  };
  for (const Case& c : cases) {
    const auto occupancy = ComputeOccupancy(Sm(c.sm), c.block);
    ASSERT_TRUE(occupancy.ok()) << occupancy.status();
    EXPECT_EQ(occupancy->blocks, c.blocks) << c.sm << " " << c.block.threads;
    EXPECT_EQ(occupancy->limiter, c.limiter) << c.sm << " " << c.block.threads;
    EXPECT_EQ(occupancy->warps, c.blocks * ((c.block.threads + 31) / 32));
  }
}

TEST(OccupancyTest, WhatDoesNotFitSaysWhy) {
  const auto message = [](const BlockResources& block) {
    const auto occupancy = ComputeOccupancy(Sm(86), block);
    EXPECT_EQ(occupancy.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(occupancy.status().message());
  };
  EXPECT_THAT(message({2000, 32, 0}), HasSubstr("1 to 1024"));
  EXPECT_THAT(message({32, 256, 0}), HasSubstr("256 registers"));
  EXPECT_THAT(message({32, 32, 100 << 10}), HasSubstr("shared memory a block"));
  EXPECT_THAT(message({1024, 128, 0}), HasSubstr("does not fit"));
  // Too old; too new for its throughputs to be known.
  for (int sm : {70, 88, 103, 110, 120, 121}) {
    EXPECT_THAT(std::string(FindGpuArchitecture(sm).status().message()),
                HasSubstr("sm_75, sm_80"))
        << sm;
  }
}

SimulatedGpu TenProcessors() {
  return {.architecture = Sm(80),
          .processors = 10,
          .clock_hz = 1'000'000'000,
          .memory_bytes_per_second = 100'000'000'000,  // 100 bytes a cycle
          .launch_nanoseconds = 1000};
}

void Set(Counters& counters, InstructionClass kind, uint64_t count) {
  counters.warp_instructions[static_cast<int>(kind)] = count;
}

TEST(CostModelTest, EachPipeCanBind) {
  // 20 blocks of a warp on 10 processors: two on each, in one wave.
  const BlockResources block = {32, 32, 0};
  const auto cost = [&](const Counters& counters) {
    return EstimateCost(TenProcessors(), block, 20, counters).value();
  };
  Counters c;
  Set(c, InstructionClass::kFma, 20 * 1000);
  // Two blocks, 1000 instructions of 32 lanes each, 64 lanes a cycle.
  EXPECT_DOUBLE_EQ(cost(c).cycles, 1000);
  EXPECT_EQ(cost(c).bound, "float32");
  EXPECT_DOUBLE_EQ(cost(c).nanoseconds, 2000);
  c = {};
  c.matrix_macs_f16 = 20 * 1024 * 700;
  EXPECT_DOUBLE_EQ(cost(c).cycles, 1400);
  EXPECT_EQ(cost(c).bound, "matrix");
  c = {};
  c.shared_wavefronts = 20 * 300;
  EXPECT_DOUBLE_EQ(cost(c).cycles, 600);
  EXPECT_EQ(cost(c).bound, "shared");
  c = {};
  c.global_load_sectors = 20 * 500;
  EXPECT_DOUBLE_EQ(cost(c).cycles, 500);  // 2 x 500 x 32 bytes at 64 a cycle
  EXPECT_EQ(cost(c).bound, "l2");
  c.footprint_load_sectors = 10000;  // 320 kB at 100 bytes a cycle
  EXPECT_DOUBLE_EQ(cost(c).cycles, 3200);
  EXPECT_EQ(cost(c).bound, "memory");
  c = {};
  c.issue_slots = 20 * 100;  // at least two cycles each for its warp
  EXPECT_DOUBLE_EQ(cost(c).cycles, 200);
  EXPECT_EQ(cost(c).bound, "latency");
  c.global_fills = 20 * 3;
  c.async_waits = {20, 20, 0, 0};  // one full latency, one half hidden
  EXPECT_DOUBLE_EQ(cost(c).cycles, 200 + 4.5 * 450);
}

TEST(CostModelTest, BlocksComeInWaves) {
  const BlockResources block = {1024, 32, 0};  // two on a processor
  const auto cost = [&](uint64_t blocks) {
    Counters c;
    Set(c, InstructionClass::kFma, blocks * 1000);
    return EstimateCost(TenProcessors(), block, blocks, c).value();
  };
  // Alone on its processor a block takes 500 cycles, two take 1000.
  EXPECT_DOUBLE_EQ(cost(1).cycles, 500);
  EXPECT_DOUBLE_EQ(cost(10).cycles, 500);
  EXPECT_DOUBLE_EQ(cost(11).cycles, 1000);
  EXPECT_DOUBLE_EQ(cost(20).cycles, 1000);
  EXPECT_DOUBLE_EQ(cost(21).cycles, 1500);
  EXPECT_EQ(cost(21).waves, 2u);
  EXPECT_DOUBLE_EQ(cost(40).cycles, 2000);
}

TEST(CostModelTest, RefusesWhatHasNoMeaning) {
  const BlockResources block = {32, 32, 0};
  EXPECT_FALSE(EstimateCost(TenProcessors(), block, 0, {}).ok());
  SimulatedGpu gpu = TenProcessors();
  gpu.clock_hz = 0;
  EXPECT_FALSE(EstimateCost(gpu, block, 1, {}).ok());
  gpu = TenProcessors();
  gpu.architecture = Sm(75);
  Counters c;
  c.matrix_macs_tf32 = 1;
  EXPECT_FALSE(EstimateCost(gpu, block, 1, c).ok());
}

TEST(CostModelTest, FillsAreFirstUsesOfLoads) {
  const auto module = PtxModule::Parse(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %d<4>; .reg .b32 %r<9>; .shared .align 4 .b8 s[128];
ld.param.u64 %d0, [p];
ld.global.u32 %r0, [%d0];
ld.global.u32 %r1, [%d0+4];
add.s32 %r2, %r0, 1;
add.s32 %r2, %r2, %r1;
ld.shared.u32 %r3, [s];
ld.shared.u32 %r4, [s+4];
add.s32 %r2, %r2, %r4;
add.s32 %r2, %r2, %r3;
ld.shared.u32 %r5, [s];
ret; })");
  ASSERT_TRUE(module.ok()) << module.status();
  TestMemory memory;
  const auto report = RunClean(*module,
                               {.entry = "k",
                                .group = {64, 1, 1},
                                .arguments = {memory.Put(std::vector<int>(4))}},
                               memory);
  EXPECT_EQ(report.counters.global_fills, 2u);
  EXPECT_EQ(report.counters.shared_fills, 2u);
}

// A schedule that is plainly worse must cost more: conflicts, no overlap.
TEST(CostModelTest, WorseKernelsCostMore) {
  SKIP_WITHOUT_NVRTC();
  const auto cost = [](const std::string& source) {
    const auto compiled = CompileCuda(source, "sm_80");
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    const PtxModule module = PtxModule::Parse(compiled->ptx).value();
    const Cubin cubin = ReadCubin(compiled->cubin).value();
    const CubinKernel* kernel = cubin.Find("matmul16");
    TestMemory memory;
    const uint64_t a = memory.Put(std::vector<uint16_t>(512 * 512));
    const uint64_t b = memory.Put(std::vector<uint16_t>(512 * 512));
    const uint64_t c = memory.Put(std::vector<float>(512 * 512));
    const auto report = RunClean(module,
                                 {.entry = "matmul16",
                                  .grid = {8, 8, 1},
                                  .group = {128, 1, 1},
                                  .dynamic_shared_bytes = kMatmul16Shared,
                                  .arguments = {a, b, c, 512, 512, 512}},
                                 memory, {.sampled_blocks = 1});
    SimulatedGpu gpu = TenProcessors();
    gpu.memory_bytes_per_second = 1'500'000'000'000;
    return EstimateCost(gpu,
                        {128, kernel->registers,
                         kernel->static_shared_bytes + kMatmul16Shared},
                        report.blocks, report.counters)
        .value();
  };
  const std::string source = Matmul16("f16");
  const Cost good = cost(source);
  // 512^3 products at 1024 a cycle on ten processors are the least possible.
  EXPECT_GE(good.cycles, 512.0 * 512 * 512 / 1024 / 10);
  EXPECT_LE(good.cycles, 20 * 512.0 * 512 * 512 / 1024 / 10);
  const Cost drained =
      cost(Planted(source, "cp.async.wait_group 1;", "cp.async.wait_group 0;"));
  EXPECT_GT(drained.cycles, good.cycles);
  std::string unswizzled =
      Planted(source, "(chunk ^ ((r / 2) & 3)) * 16,\n", "chunk * 16,\n");
  unswizzled = Planted(unswizzled, "ab + r * 64 + (chunk ^ ((r / 2) & 3)) * 16",
                       "ab + r * 64 + chunk * 16");
  EXPECT_GT(cost(unswizzled).cycles, good.cycles);
  const Cost again = cost(source);
  EXPECT_EQ(again.cycles, good.cycles);
}

}  // namespace
}  // namespace regatta::ptxsim

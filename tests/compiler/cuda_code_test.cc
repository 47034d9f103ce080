// Generated CUDA C++, compiled by NVRTC and run by the PTX simulator, which
// finds races and stray accesses too: no GPU is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/ops/op.h"
#include "tests/compiler/cuda_run.h"
#include "tests/compiler/device_code_checks.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/schedule_sweep.h"

namespace regatta {
namespace {

using ::testing::StartsWith;

constexpr int kSchedules = 100;  // of every operator at full scale

class CudaCode : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = cuda::Nvrtc::Load();
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  }
  const Target target_ = CompleteTargetOf("cuda,mcpu=sm_80");
};

TEST_F(CudaCode, ComputesWholeNumbersExactly) {
  ExpectExactCases(target_, RunOnSimulatedGpu);
}

TEST_F(CudaCode, FunctionsAreAccurate) {
  ExpectAccurateFunctions(target_, RunOnSimulatedGpu);
}

TEST_F(CudaCode, NotANumberSurvivesMaximaAndCastsSaturate) {
  ExpectDefinedCorners(target_, RunOnSimulatedGpu);
  ExpectDefinedCastsOfF64(target_, RunOnSimulatedGpu);
}

TEST_F(CudaCode, NarrowFloatsRoundToNearestEven) {
  ExpectRoundingToNearestEven(target_, RunOnSimulatedGpu);
}

class CudaSweep : public CudaCode, public ::testing::WithParamInterface<Op> {};
INSTANTIATE_TEST_SUITE_P(Operators, CudaSweep,
                         ::testing::ValuesIn(Ops().begin(), Ops().end()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CudaSweep, SchedulesAreRight) {
  ExpectRightSchedules(GetParam(), target_, kSchedules, 7, "simulated sm_80",
                       RunOnSimulatedGpu);
}

TEST_F(CudaCode, OtherArchitecturesComputeTheSame) {
  for (const char* text : {"cuda,mcpu=sm_75", "cuda,mcpu=sm_90"}) {
    const loop::Program program =
        TiledMatmul{.m = 19, .n = 23, .k = 13, .dtype = DType::kF16}.Emit();
    ExpectExact(program, BuildFor(program, CompleteTargetOf(text)),
                RunOnSimulatedGpu);
  }
}

TEST_F(CudaCode, AsynchronousCopiesLandAtTheWait) {
  AsyncCopies copies;
  ExpectExact(copies.Emit(), BuildFor(copies.Emit(), target_),
              RunOnSimulatedGpu);
  copies.first_wait = false;
  const loop::Program program = copies.Emit();
  EXPECT_THAT(
      FaultOnSimulatedGpu(BuildFor(program, target_), WholeNumbers(program, 3)),
      StartsWith("async_not_awaited"));
}

TEST_F(CudaCode, MissingBarriersAreFound) {
  TiledMatmul matmul{.m = 16, .n = 16, .k = 16};
  const auto fault = [&] {
    const loop::Program program = matmul.Emit();
    return FaultOnSimulatedGpu(BuildFor(program, target_),
                               WholeNumbers(program, 3));
  };
  EXPECT_EQ(fault(), "");
  matmul.first_barrier = false;
  EXPECT_THAT(fault(), StartsWith("shared_race"));
  matmul.first_barrier = true;
  matmul.second_barrier = false;
  EXPECT_THAT(fault(), StartsWith("shared_race"));
}

}  // namespace
}  // namespace regatta

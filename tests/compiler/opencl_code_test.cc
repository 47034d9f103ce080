// Generated OpenCL C on a real device: PoCL is one on any processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/device_code_checks.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/opencl_run.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/schedule_sweep.h"
#include "tests/compiler/status_text.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

constexpr int kSchedules = 25;  // of every operator at full scale

class OpenClCode : public OpenClCodeTest {
 protected:
  DeviceRunner Runner() const {
    return
        [this](const Module& module, const std::vector<TensorValues>& inputs) {
          return Run(module, inputs);
        };
  }
  const Target target_ = CompleteTargetOf("opencl");
};

TEST_F(OpenClCode, ComputesWholeNumbersExactly) {
  ExpectExactCases(target_, Runner());
}

TEST_F(OpenClCode, FunctionsAreAccurate) {
  ExpectAccurateFunctions(target_, Runner());
}

TEST_F(OpenClCode, NotANumberSurvivesMaximaAndCastsSaturate) {
  ExpectDefinedCorners(target_, Runner());
}

TEST_F(OpenClCode, CastsOfF64AreDefined) {
  const auto& features = device_.features();
  if (std::find(features.begin(), features.end(), "cl_khr_fp64") ==
      features.end()) {
    GTEST_SKIP() << device_.name() << " computes nothing in f64";
  }
  ExpectDefinedCastsOfF64(CompleteTargetOf("opencl,features=+cl_khr_fp64"),
                          Runner());
}

TEST_F(OpenClCode, AKernelOfAnyNameIsFound) {
  const loop::Program program = TiledMatmul().Emit();
  ExpectExact(program, BuildFor(program, target_, "ARG_max"), Runner());
}

TEST_F(OpenClCode, NarrowFloatsRoundToNearestEven) {
  ExpectRoundingToNearestEven(target_, Runner());
}

class OpenClSweep : public OpenClCode,
                    public ::testing::WithParamInterface<Op> {};
INSTANTIATE_TEST_SUITE_P(Operators, OpenClSweep,
                         ::testing::ValuesIn(Ops().begin(), Ops().end()),
                         [](const auto& info) { return info.param.name; });

TEST_P(OpenClSweep, SchedulesAreRight) {
  ExpectRightSchedules(GetParam(), target_, kSchedules, 7, "PoCL", Runner());
}

// As the device says that it can.
TEST_F(OpenClCode, ImagesHoldWhatMemoryHolds) {
  if (device_.image_width() == 0) {
    GTEST_SKIP() << "no images of floats and halves on " << device_.name();
  }
  const Target target = CompleteTargetOf(
      absl::StrCat("opencl,image_width=", device_.image_width(),
                   ",image_height=", device_.image_height()));
  ExpectRightSchedulesWith("b_from=image", ImageWorkloads(), target, target,
                           Scaled(1), Runner());
}

// Without the extension, f16 is rounded to where the device would compute in
// it: the numbers are those of a device that has it, but for the order of
// roundings in a multiply-add. PoCL compiles some for a minute: at scale 1 it
// is one workload; Oclgrind's test has all.
TEST_F(OpenClCode, SumsInHalfAreRoundedToHalf) {
  std::vector<std::string> workloads = HalfWorkloads();
  workloads.resize(std::min<size_t>(workloads.size(), Scaled(1)));
  ExpectRightSchedulesWith("f16_sums=4", workloads,
                           CompleteTargetOf("opencl,features=+cl_khr_fp16"),
                           target_, Scaled(1), Runner());
}

TEST_F(OpenClCode, WideVectorsComputeTheSame) {
  const Target target = CompleteTargetOf("opencl,vector_bits=512");
  const TiledMatmul cases[] = {{.m = 19, .n = 64, .k = 13, .bn = 64, .rn = 16},
                               {.m = 19,
                                .n = 70,
                                .k = 13,
                                .bn = 64,
                                .rn = 32,
                                .dtype = DType::kI8,
                                .out = DType::kI32},
                               {.m = 16,
                                .n = 64,
                                .k = 16,
                                .bn = 64,
                                .rn = 16,
                                .dtype = DType::kF16,
                                .out = DType::kF16}};
  for (const TiledMatmul& c : cases) {
    ExpectExact(
        c.Emit(), BuildFor(c.Emit(), target),
        [&](const Module& module, const std::vector<TensorValues>& inputs) {
          return Run(module, inputs);
        });
  }
}

// One thread runs what a processor's space offers: registers, vectors with
// tails, windows, packing, softmax and the rest reach the emitter as they are.
TEST_F(OpenClCode, SchedulesOfProcessorsRunOnOneThread) {
  Target shape = HostForTests();
  shape.vector_bits = 256;
  shape.vector_registers = 16;
  const Target target = CompleteTargetOf("opencl,vector_bits=256");
  Random random(5);
  int ran = 0;
  const size_t step = TestScale() > 1 ? 1 : 3;  // of the operators
  for (size_t o = 0; o < Ops().size(); o += step) {
    const Op& op = Ops()[o];
    for (int i = 0; i < Scaled(1); ++i) {
      const auto workload =
          ParseWorkload(op.samples[random.Below(op.samples.size())]);
      ASSERT_STATUS_OK(workload);
      if (workload->Flops() > 2e5) continue;
      const auto space = CreateSpace(*workload, shape, 1);
      ASSERT_STATUS_OK(space);
      const auto schedule = space->Sample(random);
      ASSERT_TRUE(schedule.has_value());
      const loop::Program program = space->Emit(*schedule);
      const Module module = BuildFor(program, target);
      SCOPED_TRACE(workload->text + " " + space->Print(*schedule));
      const auto inputs = SeededInputs(*workload, 17);
      ExpectNear(*workload, Run(module, inputs), Interpret(*workload, inputs),
                 "OpenCL");
      ++ran;
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(ran, 3);
}

}  // namespace
}  // namespace regatta

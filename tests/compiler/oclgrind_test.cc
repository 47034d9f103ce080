// Generated OpenCL C under Oclgrind: no races, nothing out of bounds, and the
// interpreter's results; planted faults are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/ops/op.h"
#include "tests/compiler/device_cases.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/oclgrind_run.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/schedule_sweep.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

constexpr int kSchedules = 100;  // of every operator at full scale

// Process-wide: there is no second OpenCL in it.
const Oclgrind& TheOclgrind() {
  static const Oclgrind oclgrind;
  return oclgrind;
}

#define SKIP_WITHOUT_OCLGRIND()              \
  if (!TheOclgrind().missing().empty()) {    \
    GTEST_SKIP() << TheOclgrind().missing(); \
  }

Module BuildProgram(const loop::Program& program) {
  return BuildFor(program, CompleteTargetOf("opencl"));
}

std::string Complaints(const loop::Program& program) {
  return TheOclgrind()
      .Run(BuildProgram(program), WholeNumbers(program, 3))
      .complaints;
}

TEST(OpenClRaces, GeneratedKernelsAreClean) {
  SKIP_WITHOUT_OCLGRIND();
  const std::set<std::string> chosen = {"RaggedMatmul_f32", "Matmul_f16",
                                        "Transpose_bf16",   "Transpose_i8",
                                        "RowSums",          "Maps_f32"};
  size_t ran = 0;
  for (const DeviceCase& c : DeviceCases()) {
    if (chosen.count(c.name) == 0) continue;
    EXPECT_EQ(Complaints(c.program), "") << c.name;
    ++ran;
  }
  EXPECT_EQ(ran, chosen.size());
}

TEST(OpenClRaces, MissingBarriersAreFound) {
  SKIP_WITHOUT_OCLGRIND();
  TiledMatmul matmul{.m = 16, .n = 16, .k = 16};
  EXPECT_EQ(Complaints(matmul.Emit()), "");
  matmul.first_barrier = false;
  EXPECT_THAT(Complaints(matmul.Emit()), HasSubstr("Read-write data race"));
  matmul.first_barrier = true;
  matmul.second_barrier = false;
  EXPECT_THAT(Complaints(matmul.Emit()), HasSubstr("Read-write data race"));
}

// A buffer of one element less than the kernel was made for.
TEST(OpenClRaces, StrayReadsAreFound) {
  SKIP_WITHOUT_OCLGRIND();
  const loop::Program program = TiledMatmul{.m = 16, .n = 16, .k = 16}.Emit();
  Module module = BuildProgram(program);
  auto inputs = WholeNumbers(program, 3);
  module.buffers[0].bytes -= DTypeBytes(module.buffers[0].dtype);
  inputs[0].pop_back();
  EXPECT_THAT(TheOclgrind().Run(module, inputs).complaints,
              HasSubstr("Invalid read"));
}

std::vector<TensorValues> RunClean(const Module& module,
                                   const std::vector<TensorValues>& inputs) {
  Oclgrind::Result result = TheOclgrind().Run(module, inputs);
  EXPECT_EQ(result.complaints, "") << module.loadable;
  return std::move(result.outputs);
}

TEST(OpenClRaces, ImagesAreRightAndClean) {
  SKIP_WITHOUT_OCLGRIND();
  const Target target =
      CompleteTargetOf("opencl,image_width=8192,image_height=8192");
  ExpectRightSchedulesWith("b_from=image", ImageWorkloads(), target, target,
                           Scaled(2), RunClean);
}

TEST(OpenClRaces, SumsInHalfAreRightAndClean) {
  SKIP_WITHOUT_OCLGRIND();
  ExpectRightSchedulesWith("f16_sums=", HalfWorkloads(),
                           CompleteTargetOf("opencl,features=+cl_khr_fp16"),
                           CompleteTargetOf("opencl"), Scaled(2), RunClean);
}

class OclgrindSweep : public testing::TestWithParam<Op> {};
INSTANTIATE_TEST_SUITE_P(Operators, OclgrindSweep,
                         testing::ValuesIn(Ops().begin(), Ops().end()),
                         [](const auto& info) { return info.param.name; });

TEST_P(OclgrindSweep, SchedulesAreRightAndClean) {
  SKIP_WITHOUT_OCLGRIND();
  ExpectRightSchedules(
      GetParam(), CompleteTargetOf("opencl,image_width=8192,image_height=8192"),
      kSchedules, 11, "Oclgrind", RunClean);
}

}  // namespace
}  // namespace regatta

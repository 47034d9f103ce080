// Random schedules of every operator for ARM processors, under QEMU.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "tests/compiler/arm_program.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/schedule_sweep.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

constexpr int kSchedules = 100;  // of every operator at full scale

class ArmSweep : public testing::TestWithParam<Op> {};
INSTANTIATE_TEST_SUITE_P(Operators, ArmSweep,
                         testing::ValuesIn(Ops().begin(), Ops().end()),
                         [](const auto& info) { return info.param.name; });

// The processors take turns; each gets one program with all of its modules.
TEST_P(ArmSweep, SchedulesAreRight) {
  if (const std::string missing = ArmProgramsMissing(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  struct Planned {
    ArmProgram program;
    std::vector<ScheduleSweep::Draw> draws;
  };
  std::map<size_t, Planned> plans;
  ScheduleSweep sweep(GetParam(), kSchedules, 5);
  // Other processors with every operator, where there are few turns.
  size_t turn = GetParam().name.size();
  while (true) {
    const size_t at = turn++ % ArmProcessors().size();
    const auto draw = sweep.Next(ArmTarget(ArmProcessors()[at].mcpu));
    if (!draw) break;
    Planned& plan = plans[at];
    const auto module = Compile(*draw->space, draw->schedule,
                                absl::StrCat("k", plan.draws.size()));
    ASSERT_STATUS_OK(module) << draw->What();
    plan.program.Add(*module, draw->task->workload, draw->task->inputs);
    plan.draws.push_back(*draw);
    sweep.Ran();
  }
  for (auto& [at, plan] : plans) {
    const ArmProcessor& processor = ArmProcessors()[at];
    ASSERT_EQ(plan.program.Run(processor.qemu), 0) << processor.mcpu;
    for (size_t i = 0; i < plan.draws.size(); ++i) {
      ExpectNear(plan.draws[i].task->workload, plan.program.Outputs(i),
                 plan.draws[i].task->expected,
                 absl::StrCat(processor.mcpu, " ", plan.draws[i].What()));
    }
  }
  if (!HasFailure()) {
    sweep.Report(absl::StrCat("QEMU, ", plans.size(), " ARM processors"));
  }
}

}  // namespace
}  // namespace regatta

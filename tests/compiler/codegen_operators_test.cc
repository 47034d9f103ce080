// Random schedules of every operator and type, from the front door to running
// machine code, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/status_text.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

// At the default scale; REGATTA_TEST_SCALE=250 runs 1,000 of each.
constexpr int kSchedules = 4;
// Larger samples are slow to interpret.
constexpr double kMaxFlops = 1e6;

// One sample of an operator, with what the interpreter makes of it.
struct Case {
  Workload workload;
  std::vector<TensorValues> inputs, expected;
};

// The type of the first input and, where it is another, of the output: what a
// person calls the operator's type.
std::string TypeFamily(const Workload& workload) {
  const std::string in(DTypeName(
      workload.tensors[workload.TensorsWithRole(TensorRole::kInput)[0]].dtype));
  const std::string out(DTypeName(workload.tensors.back().dtype));
  return in == out ? in : in + "_" + out;
}

std::map<std::string, std::vector<Case>> CasesOf(const Op& op) {
  std::map<std::string, std::vector<Case>> cases;
  for (const std::string& sample : op.samples) {
    const auto workload = ParseWorkload(sample);
    EXPECT_TRUE(workload.ok()) << sample << ": " << StatusText(workload);
    if (!workload.ok() || workload->Flops() > kMaxFlops) continue;
    Case test{.workload = *workload, .inputs = SeededInputs(*workload, 17)};
    test.expected = Interpret(test.workload, test.inputs);
    cases[TypeFamily(test.workload)].push_back(std::move(test));
  }
  return cases;
}

struct Counts {
  int ran = 0, distinct = 0, refused = 0;
};

// Seeds of the space first, then random schedules; samples, targets and numbers
// of threads take turns.
class Runner {
 public:
  // REQUIRES: `cases` outlive the runner.
  explicit Runner(const std::vector<Case>& cases) {
    for (const Case& test : cases) {
      for (const NamedTarget& target : RunnableTargets()) {
        for (const int threads : {1, 3}) {
          auto space = CreateSpace(test.workload, target.target, threads);
          EXPECT_TRUE(space.ok()) << test.workload.text;
          if (space.ok()) spaces_.push_back({&test, *std::move(space)});
        }
      }
    }
  }

  Counts Run(int count) {
    Random random(29);
    std::set<std::string> binaries;
    for (int i = 0; counts_.ran + counts_.refused < count; ++i) {
      const Entry& entry = spaces_[(i * kStep) % spaces_.size()];
      const auto schedule = entry.space.Sample(random);
      EXPECT_TRUE(schedule.has_value()) << entry.test->workload.text;
      if (!schedule) break;
      const std::string printed = entry.space.Print(*schedule);
      const auto module = Compile(entry.space, printed, "k");
      if (module.status().code() == absl::StatusCode::kFailedPrecondition) {
        ++counts_.refused;
        continue;
      }
      EXPECT_TRUE(module.ok()) << entry.test->workload.text << " " << printed
                               << ": " << StatusText(module);
      if (!module.ok()) break;
      ++counts_.ran;
      binaries.insert(module->BinaryHash());
      ExpectNear(entry.test->workload,
                 RunModule(*module, entry.test->workload, entry.test->inputs),
                 entry.test->expected,
                 entry.space.context().target.mcpu + " " + printed);
      if (testing::Test::HasFailure()) break;
    }
    counts_.distinct = static_cast<int>(binaries.size());
    return counts_;
  }

 private:
  // Prime to the number of spaces, so that few draws see many of them.
  static constexpr size_t kStep = 1000003;
  struct Entry {
    const Case* test;
    Space space;
  };
  std::vector<Entry> spaces_;
  Counts counts_;
};

class EveryOperator : public testing::TestWithParam<Op> {};

INSTANTIATE_TEST_SUITE_P(Ops, EveryOperator,
                         testing::ValuesIn(Ops().begin(), Ops().end()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryOperator, RandomSchedulesOfEveryTypeAgreeWithTheInterpreter) {
  const Op& op = GetParam();
  for (const auto& [type, cases] : CasesOf(op)) {
    const Counts counts = Runner(cases).Run(Scaled(kSchedules));
    std::printf("%s %s: %d ran, %d distinct, %d refused\n", op.name.c_str(),
                type.c_str(), counts.ran, counts.distinct, counts.refused);
    EXPECT_EQ(counts.refused, 0);  // samples are legal
    EXPECT_GT(counts.ran, 0);
    if (HasFailure()) return;
  }
}

// A maximum with a NaN among its operands is NaN, in whatever order a schedule
// looks at them.
TEST(NaNTest, SurvivesEverySchedule) {
  for (const char* text :
       {"reduce(shape=5x67,axes=1,kind=max)",
        "reduce(shape=37x21,axes=0,kind=min)",
        "reduce(shape=5x67,axes=1,kind=argmax)",
        "pool2d(n=1,h=7,w=9,c=19,kh=3,kw=3,pad=1)", "elementwise(shape=5x37)",
        "softmax(rows=7,cols=37)"}) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    auto inputs = SeededInputs(*workload, 3);
    for (size_t i = 0; i < inputs[0].size(); i += 31) {
      inputs[0][i] = std::numeric_limits<double>::quiet_NaN();
    }
    const auto expected = Interpret(*workload, inputs);
    for (const NamedTarget& target : RunnableTargets()) {
      const auto space = CreateSpace(*workload, target.target, 1);
      ASSERT_STATUS_OK(space);
      Random random(5);
      for (int i = 0; i < Scaled(3); ++i) {
        const auto schedule = space->Sample(random);
        ASSERT_TRUE(schedule.has_value());
        const std::string printed = space->Print(*schedule);
        const auto module = Compile(*space, printed, "k");
        ASSERT_STATUS_OK(module);
        const auto got = RunModule(*module, *workload, inputs);
        for (size_t e = 0; e < expected[0].size(); ++e) {
          ASSERT_EQ(std::isnan(got[0][e]), std::isnan(expected[0][e]))
              << text << " " << target.name << " " << printed << " at " << e;
          if (std::isnan(got[0][e])) continue;
          ASSERT_NEAR(got[0][e], expected[0][e], 1e-5)
              << text << " " << target.name << " " << printed << " at " << e;
        }
      }
    }
  }
}

}  // namespace
}  // namespace regatta

// Schedules from the front door to running code, against the interpreter, and
// the reference that larger results are compared with.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/compile.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ops/op.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

const char* const kSmallWorkloads[] = {
    "matmul(m=1,n=1,k=1)",
    "matmul(m=1,n=37,k=20)",
    "matmul(m=33,n=1,k=7)",
    "matmul(m=17,n=35,k=29)",
    "matmul(m=17,n=35,k=29,dtype=f16)",
    "matmul(m=17,n=35,k=29,dtype=bf16)",
    "matmul(m=17,n=35,k=29,dtype=i8)",
    "conv2d(n=1,h=7,w=9,ci=3,co=5,kh=3,kw=3,stride=1,pad=1)",
    "conv2d(n=2,h=8,w=6,ci=4,co=20,kh=3,kw=2,stride=2,pad=1)",
    "softmax(rows=1,cols=1)",
    "softmax(rows=5,cols=37)",
    ("C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = max(C[i,j] + b[j], 0) "
     "where i=9, j=21, k=13, dtype=f32"),
    "Y[i] = max(j) X[i,j] where i=6, j=50, dtype=f32",
    "Y[i] = sum(j) X[j,i] where i=40, j=11, dtype=f32",
};

TEST(Reference, AgreesWithTheInterpreter) {
  for (const char* text : kSmallWorkloads) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload) << text;
    const auto module = CompileReference(*workload, HostForTests(), "r");
    ASSERT_STATUS_OK(module) << text;
    EXPECT_EQ(module->threads, 1);
    EXPECT_EQ(module->workload_key, workload->key);
    const auto inputs = SeededInputs(*workload, 1);
    ExpectNear(*workload, RunModule(*module, *workload, inputs),
               Interpret(*workload, inputs), "reference");
  }
}

TEST(Compile, SchedulesOfSmallShapesAgreeWithTheInterpreter) {
  for (const char* text : kSmallWorkloads) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    const auto inputs = SeededInputs(*workload, 2);
    const auto expected = Interpret(*workload, inputs);
    for (const NamedTarget& target : RunnableTargets()) {
      const auto space = CreateSpace(*workload, target.target, 1);
      ASSERT_STATUS_OK(space);
      Random random(3);
      std::vector<Schedule> schedules = space->Seeds();
      schedules.resize(std::min<size_t>(schedules.size(), 2));
      for (int i = 0; i < 4; ++i) {
        if (auto s = space->Sample(random)) schedules.push_back(*s);
      }
      for (const Schedule& schedule : schedules) {
        const std::string printed = space->Print(schedule);
        const auto module = Compile(*space, printed, "k");
        ASSERT_STATUS_OK(module) << text << " " << printed;
        EXPECT_EQ(module->schedule, printed);
        ExpectNear(*workload, RunModule(*module, *workload, inputs), expected,
                   target.name + " " + printed);
      }
    }
  }
}

// Results of a mebibyte, all by streaming stores as far as there are any.
TEST(Compile, StreamedSchedulesAgreeWithTheInterpreter) {
  for (const char* text :
       {"Y[j,i] = X[i,j] where i=521, j=509", "softmax(rows=300,cols=1001)",
        "Y[i] = max(X[i], 0.5) where i=300007",
        "Y[y,x,c] = max(r,s) X[y*2+r,x*2+s,c]; Z[y,x,c] = Y[y,x,c] + 1 "
        "where y=33, x=129, c=70, r=2, s=2"}) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload) << text;
    const auto inputs = SeededInputs(*workload, 2);
    const auto expected = Interpret(*workload, inputs);
    for (const int threads : {1, 3}) {
      const auto space = CreateSpace(*workload, HostForTests(), threads);
      ASSERT_STATUS_OK(space);
      Random random(3);
      int streamed = 0;
      for (int i = 0; i < 100 && streamed < 3; ++i) {
        const auto schedule = space->Sample(random);
        ASSERT_TRUE(schedule.has_value());
        const std::string printed = space->Print(*schedule);
        if (printed.find("stores=streamed") == std::string::npos) continue;
        ++streamed;
        const auto module = Compile(*space, printed, "k");
        ASSERT_STATUS_OK(module) << text << " " << printed;
        ExpectNear(*workload, RunModule(*module, *workload, inputs), expected,
                   printed);
      }
      EXPECT_EQ(streamed, 3) << text;
    }
  }
}

// Also where an instruction takes one operand as unsigned.
TEST(Compile, SumsOfBytesAreExactOverTheirWholeRange) {
  for (const char* text :
       {"matmul(m=17,n=35,k=70,dtype=i8)", "matmul(m=4,n=16,k=1,dtype=i8)",
        "batch_matmul(b=2,m=9,n=40,k=21,dtype=i8)",
        "conv2d(n=1,h=8,w=7,ci=5,co=20,kh=3,kw=3,pad=1,dtype=i8)",
        "conv2d(n=1,h=9,w=19,ci=6,co=8,kh=3,kw=3,stride=2,pad=1,dtype=i8,"
        "layout=NCHW)"}) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    const auto inputs = FullRangeInputs(*workload, 5);
    const auto expected = Interpret(*workload, inputs);
    for (const NamedTarget& target : RunnableTargets()) {
      const auto space = CreateSpace(*workload, target.target, 1);
      ASSERT_STATUS_OK(space);
      Random random(7);
      std::vector<Schedule> schedules = {space->Default()};
      for (int i = 0; i < 3; ++i) {
        if (auto s = space->Sample(random)) schedules.push_back(*s);
      }
      for (const Schedule& schedule : schedules) {
        const std::string printed = space->Print(schedule);
        const auto module = Compile(*space, printed, "k");
        ASSERT_STATUS_OK(module) << text << " " << printed;
        ExpectNear(*workload, RunModule(*module, *workload, inputs), expected,
                   target.name + " " + printed);
      }
    }
  }
}

TEST(Compile, CastsFromIndicesToHalfRound) {
  const auto workload =
      ParseWorkload("C[i] = f16(i) where i=4100, C=f32[4100]");
  ASSERT_STATUS_OK(workload);
  for (const NamedTarget& target : RunnableTargets()) {
    const auto space = CreateSpace(*workload, target.target, 1);
    ASSERT_STATUS_OK(space);
    const auto module = Compile(*space, space->Print(space->Default()), "k");
    ASSERT_STATUS_OK(module);
    const auto outputs = RunModule(*module, *workload, {});
    // Eleven bits of significand: 2049 lies between 2048 and 2050, 4099 between
    // 4096 and 4100; halves go to even.
    EXPECT_EQ(outputs[0][2047], 2047) << target.name;
    EXPECT_EQ(outputs[0][2049], 2048) << target.name;
    EXPECT_EQ(outputs[0][2051], 2052) << target.name;
    EXPECT_EQ(outputs[0][4099], 4100) << target.name;
  }
}

TEST(Compile, ParallelSchedulesAgreeWithTheInterpreter) {
  for (const char* text :
       {"matmul(m=40,n=50,k=30)", "softmax(rows=30,cols=40)",
        "conv2d(n=1,h=10,w=10,ci=8,co=16,kh=3,kw=3,stride=1,pad=1)"}) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    const auto inputs = SeededInputs(*workload, 2);
    const auto expected = Interpret(*workload, inputs);
    const auto space = CreateSpace(*workload, HostForTests(), 3);
    ASSERT_STATUS_OK(space);
    Random random(5);
    for (int i = 0; i < 12; ++i) {
      const auto schedule = space->Sample(random);
      ASSERT_TRUE(schedule.has_value());
      const std::string printed = space->Print(*schedule);
      const auto module = Compile(*space, printed, "k");
      ASSERT_STATUS_OK(module) << text << " " << printed;
      ExpectNear(*workload, RunModule(*module, *workload, inputs), expected,
                 printed);
    }
  }
}

struct OperatorShapes {
  const char* name;
  std::vector<const char*> shapes;
};

void PrintTo(const OperatorShapes& shapes, std::ostream* out) {
  *out << shapes.name;
}

class Operators : public testing::TestWithParam<OperatorShapes> {};
INSTANTIATE_TEST_SUITE_P(
    Compile, Operators,
    testing::Values(
        OperatorShapes{"matmul",
                       {"matmul(m=127,n=193,k=511)",
                        "matmul(m=256,n=256,k=256)", "matmul(m=1,n=1000,k=300)",
                        "matmul(m=1,n=1,k=1)", "matmul(m=64,n=48,k=1000)"}},
        OperatorShapes{
            "conv2d",
            {"conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,stride=1,pad=1)",
             "conv2d(n=1,h=29,w=31,ci=13,co=21,kh=5,kw=3,stride=2,pad=2)",
             "conv2d(n=2,h=14,w=14,ci=32,co=48,kh=1,kw=1,stride=1,pad=0)",
             "conv2d(n=1,h=1,w=40,ci=3,co=8,kh=1,kw=3,stride=1,pad=1)"}},
        OperatorShapes{
            "softmax",
            {"softmax(rows=256,cols=1024)", "softmax(rows=1,cols=999)",
             "softmax(rows=33,cols=1)", "softmax(rows=77,cols=130)"}}),
    [](const auto& info) { return std::string(info.param.name); });

// Fifty random schedules of each shape. Equal code for different
// schedules is legitimate but must be rare enough for a search to make sense.
TEST_P(Operators, RandomSchedulesAgreeWithTheReferenceAndDiffer) {
  int ran = 0, distinct = 0, refused = 0;
  for (const char* text : GetParam().shapes) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload) << text;
    const auto inputs = SeededInputs(*workload, 7);
    const auto reference = CompileReference(*workload, HostForTests(), "r");
    ASSERT_STATUS_OK(reference);
    const auto expected = RunModule(*reference, *workload, inputs);
    const auto space = CreateSpace(*workload, HostForTests(), 1);
    ASSERT_STATUS_OK(space);
    Random random(11);
    std::set<std::string> schedules, binaries;
    for (int i = 0; i < 50; ++i) {
      const auto schedule = space->Sample(random);
      ASSERT_TRUE(schedule.has_value()) << text;
      const std::string printed = space->Print(*schedule);
      if (!schedules.insert(printed).second) continue;
      const auto module = Compile(*space, printed, "k");
      if (module.status().code() == absl::StatusCode::kFailedPrecondition) {
        ++refused;
        continue;
      }
      ASSERT_STATUS_OK(module) << text << " " << printed;
      ++ran;
      binaries.insert(module->BinaryHash());
      ExpectNear(*workload, RunModule(*module, *workload, inputs), expected,
                 printed);
      if (HasFailure()) return;
    }
    distinct += static_cast<int>(binaries.size());
  }
  std::printf("%s: %d schedules ran, %d distinct binaries, %d refused\n",
              GetParam().name, ran, distinct, refused);
  EXPECT_EQ(refused, 0);  // samples are legal
  EXPECT_GE(ran, 150);
  EXPECT_GE(distinct, ran * 4 / 5);
}

TEST(Compile, RefusalsAndUnknownSchedulesAreToldApart) {
  const auto workload = ParseWorkload("matmul(m=64,n=64,k=64)");
  ASSERT_STATUS_OK(workload);
  const auto space = CreateSpace(*workload, HostForTests(), 1);
  ASSERT_STATUS_OK(space);
  EXPECT_EQ(Compile(*space, "nonsense{", "k").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Compile, UnknownTargetKindsAreRefused) {
  Target target = HostForTests();
  target.kind = "abacus";
  EXPECT_EQ(CompleteTarget(target).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace regatta

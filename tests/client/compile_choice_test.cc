// Which answers `compile` uses, and when a changed compiler does not matter.
#include "client/cli/compile_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"

namespace regatta::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kOldCompiler[] = "0000000000000000/LLVM 1";

class CompileChoice : public ::testing::Test {
 protected:
  static Space MakeSpace() {
    auto workload = ParseWorkload("matmul(m=16,n=16,k=16)");
    CHECK(workload.ok());
    auto space = CreateSpace(*workload, *HostTarget(), 1);
    CHECK(space.ok());
    return *space;
  }

  // An answer of `grade` with a schedule that is not the default.
  v1::BestAnswer Answer(const std::string& grade,
                        const std::string& compiler) const {
    v1::BestAnswer answer;
    answer.set_grade(grade);
    answer.set_reason("because");
    answer.mutable_schedule()->set_text(schedule_);
    answer.set_compiler_version(compiler);
    if (grade == "compatible") answer.set_differing_field("compiler_version");
    return answer;
  }
  std::string Hash(const char* name) const {
    auto module = Compile(space_, schedule_, name);
    CHECK(module.ok()) << module.status();
    return module->BinaryHash();
  }

  const Space space_ = MakeSpace();
  const std::string default_ = space_.Print(space_.Default());
  const std::string schedule_ = space_.Print(space_.Seeds().at(1));
  const std::string own_ = CompilerVersion(space_.context().target);
};

TEST_F(CompileChoice, ARefusalSaysOfWhat) {
  const Target target = *ParseTarget("cuda,mcpu=sm_80,max_registers=1");
  const absl::Status rule =
      absl::FailedPreconditionError("registers: 19 of 1 registers");
  EXPECT_EQ(
      ExplainRefusal(rule, {"s", "default", ""}, "matmul(m=1,n=1,k=1)", target)
          .message(),
      "the default schedule of 'matmul(m=1,n=1,k=1)' does not fit the target "
      "cuda,mcpu=sm_80,max_registers=1: registers: 19 of 1 registers; check "
      "the limits that the target names, or tune on a board of it");
  EXPECT_THAT(
      std::string(
          ExplainRefusal(rule, {"s", "exact", ""}, "w", target).message()),
      HasSubstr("the best-known schedule of 'w'"));
  const absl::Status bug = absl::InternalError("bug");
  EXPECT_EQ(ExplainRefusal(bug, {"s", "default", ""}, "w", target), bug);
}

TEST_F(CompileChoice, TakesWhatWasMeasuredHereAndNothingElse) {
  ASSERT_NE(schedule_, default_);
  for (const char* grade : {"exact", "compatible"}) {
    const Choice choice = ChooseSchedule(Answer(grade, own_), space_);
    EXPECT_EQ(choice.grade, grade);
    EXPECT_EQ(choice.schedule, schedule_);
    EXPECT_EQ(choice.reason, "because");
  }
  for (const char* grade : {"neighbour_shape", "neighbour_device", "default"}) {
    const Choice choice = ChooseSchedule(Answer(grade, own_), space_);
    EXPECT_EQ(choice.grade, "default");
    EXPECT_EQ(choice.schedule, default_);
  }
}

TEST_F(CompileChoice, AnotherCompilerThatGivesTheSameBinaryIsExact) {
  for (const char* grade : {"exact", "compatible"}) {
    v1::BestAnswer answer = Answer(grade, kOldCompiler);
    EXPECT_EQ(ChooseSchedule(answer, space_).grade, "compatible");
    answer.set_binary_hash(std::string(64, '0'));
    EXPECT_EQ(ChooseSchedule(answer, space_).grade, "compatible");
    // As boards name their modules, whatever the caller's function is called.
    answer.set_binary_hash(Hash(kTrialModuleName));
    const Choice choice = ChooseSchedule(answer, space_);
    EXPECT_EQ(choice.grade, "exact");
    EXPECT_EQ(choice.schedule, schedule_);
    EXPECT_THAT(choice.reason, HasSubstr(kOldCompiler));
  }
  EXPECT_NE(Hash(kTrialModuleName), Hash("another"));
}

TEST_F(CompileChoice, AnotherTargetIsNotMadeExactByItsHash) {
  v1::BestAnswer answer = Answer("compatible", kOldCompiler);
  answer.set_differing_field("target");
  answer.set_binary_hash(Hash(kTrialModuleName));
  EXPECT_EQ(ChooseSchedule(answer, space_).grade, "compatible");
}

}  // namespace
}  // namespace regatta::cli

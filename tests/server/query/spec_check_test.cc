#include "server/query/spec_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "server/query/best_memo.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

v1::TrialSpec Spec(const std::string& schedule) {
  v1::TrialSpec spec;
  spec.set_workload("matmul(m=64,n=64,k=64)");
  spec.set_target(
      "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
      "vector_registers=32");
  spec.mutable_policy()->set_threads(1);
  spec.mutable_schedule()->set_space("cpu");
  spec.mutable_schedule()->set_space_version(kSpaceVersion);
  spec.mutable_schedule()->set_text(schedule);
  return spec;
}

TEST(SpecCheck, TakesSchedulesOfTheirSpaceAlone) {
  const auto check = MakeSpecCheck();
  const auto target = ParseTarget(Spec("").target());
  ASSERT_TRUE(target.ok());
  BestMemo memo;
  const auto workload = memo.Parse(Spec("").workload());
  ASSERT_TRUE(workload.ok());
  const auto text = memo.DefaultSchedule(**workload, {.target = *target}, 1);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(check(Spec(*text)).ok()) << check(Spec(*text));
  for (const std::string& bad :
       {std::string(), std::string("no schedule"), *text + "x"}) {
    const absl::Status status = check(Spec(bad));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("its schedule"));
  }
  // Another version's, another device's, and one for a target not fully known.
  v1::TrialSpec spec = Spec("no schedule");
  spec.mutable_schedule()->set_space_version(kSpaceVersion + 1);
  EXPECT_TRUE(check(spec).ok());
  spec = Spec("no schedule");
  spec.mutable_schedule()->set_space("abacus");
  EXPECT_TRUE(check(spec).ok());
  spec = Spec("no schedule");
  spec.set_target("cpu,mcpu=znver4");
  EXPECT_TRUE(check(spec).ok());
}

TEST(SpecCheck, RefusesATargetThatCannotBeReadAndTooManyThreads) {
  const auto check = MakeSpecCheck();
  v1::TrialSpec spec = Spec("");
  spec.set_target("cpu,vector_bits=many");
  EXPECT_THAT(std::string(check(spec).message()), HasSubstr("its target"));
  spec = Spec("");
  spec.mutable_policy()->set_threads(1025);
  EXPECT_THAT(std::string(check(spec).message()), HasSubstr("1025 threads"));
}

}  // namespace
}  // namespace regatta

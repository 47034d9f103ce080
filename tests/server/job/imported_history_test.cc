// What another log measured reaches a task as seeds and as nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ops/op.h"
#include "server/job/task_history.h"
#include "server/query/workload_info.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kTarget[] = "cpu,triple=x86_64-linux-gnu,mcpu=znver4";
constexpr char kCompiler[] = "compiler-1";

TEST(ImportedHistory, IsSeedsOnlyEvenWhenItsJobAndClassAreThoseOfTheTask) {
  const testing::TempDir dir;
  const auto log = *OpenTuningLog(dir.path() + "/log");
  TaskSpec task;
  task.job_id = 1;
  task.workload = *ParseWorkload("matmul(m=8,n=8,k=8)");
  task.device_class = "znver4-2c";
  task.policy.set_threads(1);
  task.policy.set_cache(v1::CACHE_STATE_WARM);

  v1::LogEntry entry;
  v1::TrialResult& result = *entry.mutable_record()->mutable_result();
  v1::TrialSpec& spec = *result.mutable_spec();
  spec.set_trial_id("feed:1/0/7");
  spec.set_job_id(1);  // as the task's own would have it
  spec.set_ordinal(7);
  spec.set_workload(task.workload.text);
  spec.set_workload_key(task.workload.key);
  spec.set_target(kTarget);
  spec.set_compiler_version(kCompiler);
  *spec.mutable_policy() = task.policy;
  spec.mutable_schedule()->set_text("theirs");
  result.set_device_class(task.device_class);
  result.set_outcome(v1::OUTCOME_OK);
  result.set_time_ns(1);
  const v1::LogEntry* const entries[] = {&entry};
  const auto verdicts = log->exchange().Import(
      entries, {.name = "lab-b", .describe = DescribeWorkloadText});
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  ASSERT_EQ(verdicts->front().status(), v1::ImportVerdict::STATUS_ADDED)
      << verdicts->front().reason();

  const auto any = [](const std::string&) { return true; };
  auto history = LoadTaskHistory(*log, task, kTarget, kCompiler, any);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_THAT(history->own, IsEmpty());
  EXPECT_THAT(history->reusable, IsEmpty());
  EXPECT_THAT(history->suggestions, ElementsAre("theirs"));

  task.fresh = true;
  history = LoadTaskHistory(*log, task, kTarget, kCompiler, any);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_THAT(history->suggestions, IsEmpty());
}

}  // namespace
}  // namespace regatta

#include "client/cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/match.h"

namespace regatta::cli {
namespace {

v1::Job RunningJob(int64_t trials) {
  v1::Job job;
  job.set_job_id(1);
  job.set_state(v1::JOB_STATE_RUNNING);
  v1::TaskStatus* task = job.add_tasks();
  task->set_workload("matmul(m=512,n=512,k=512)");
  task->set_device_class("znver4-2c");
  task->set_state(v1::JOB_STATE_RUNNING);
  task->set_phase("search");
  task->set_trials(trials);
  task->set_budget_trials(200);
  task->set_trials_per_s(11.25);
  task->set_remaining_ms(15'400);
  task->set_flops(2e9);
  task->set_bytes(3e6);
  task->set_best_ns(20'000'000);
  task->set_peak_flops_per_s(125e9);
  task->set_bandwidth_bytes_per_s(10e9);
  return job;
}

TEST(ProgressLine, HasTrialRateTimeLeftAndBest) {
  EXPECT_EQ(ProgressLine(RunningJob(37).tasks(0)),
            "matmul(m=512,n=512,k=512) on znver4-2c  trial 37 of 200, 11.2/s, "
            "15 s left, best 100.0 GFLOP/s (80 % of the measured peak)");
}

TEST(ProgressLine, SaysWhyATaskWaitsOrEnded) {
  v1::TaskStatus task = RunningJob(3).tasks(0);
  task.set_best_ns(0);
  task.set_state(v1::JOB_STATE_PAUSED);
  task.set_reason("the default schedule failed: crashed");
  EXPECT_EQ(ProgressLine(task),
            "matmul(m=512,n=512,k=512) on znver4-2c  paused, trial 3 of 200, "
            "the default schedule failed: crashed");
}

TEST(ProgressLine, ABudgetOfTimeHasNoTotal) {
  v1::TaskStatus task = RunningJob(3).tasks(0);
  task.set_budget_trials(0);
  task.set_remaining_ms(-1);
  task.set_best_ns(0);
  EXPECT_EQ(ProgressLine(task),
            "matmul(m=512,n=512,k=512) on znver4-2c  trial 3, 11.2/s, time "
            "left unknown");
}

TEST(FitLine, NeverCutsACharacterInTwo) {
  EXPECT_EQ(FitLine("short", 5), "short");
  EXPECT_EQ(FitLine("a longer line", 8), "a lon...");
  EXPECT_EQ(FitLine("aaaa\u00e9\u00e9\u00e9", 8), "aaaa...");
  EXPECT_EQ(FitLine("abc", 2), "..");
}

class PlainProgress : public ::testing::Test {
 protected:
  FakeClock clock_;
  std::ostringstream out_;
  ProgressDisplay display_{/*enabled=*/true, /*terminal=*/false, clock_, out_};
};

TEST_F(PlainProgress, PrintsNowAndThenWithoutControlCharacters) {
  display_.Update(RunningJob(1));
  clock_.Advance(absl::Seconds(1));
  display_.Update(RunningJob(2));
  EXPECT_EQ(out_.str(), ProgressLine(RunningJob(1).tasks(0)) + "\n");
  clock_.Advance(absl::Seconds(5));
  display_.Update(RunningJob(90));
  EXPECT_EQ(out_.str(), ProgressLine(RunningJob(1).tasks(0)) + "\n" +
                            ProgressLine(RunningJob(90).tasks(0)) + "\n");
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos);
}

TEST_F(PlainProgress, TheEndIsPrintedAtOnce) {
  display_.Update(RunningJob(199));
  v1::Job done = RunningJob(200);
  done.set_state(v1::JOB_STATE_DONE);
  done.mutable_tasks(0)->set_state(v1::JOB_STATE_DONE);
  display_.Update(done);
  EXPECT_NE(out_.str().find("done, trial 200 of 200"), std::string::npos);
}

TEST_F(PlainProgress, NothingNewPrintsNothing) {
  display_.Update(RunningJob(1));
  const std::string before = out_.str();
  clock_.Advance(absl::Seconds(60));
  display_.Update(RunningJob(1));
  EXPECT_EQ(out_.str(), before);
}

TEST(Progress, DisabledItIsSilent) {
  std::ostringstream out;
  const FakeClock clock;
  ProgressDisplay display(/*enabled=*/false, /*terminal=*/true, clock, out);
  display.Update(RunningJob(1));
  display.Note("note");
  display.Finish();
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, OnATerminalItRewritesItsLinesAndKeepsNotes) {
  std::ostringstream out;
  const FakeClock clock;
  ProgressDisplay display(/*enabled=*/true, /*terminal=*/true, clock, out);
  display.Update(RunningJob(50));
  const std::string first = out.str();
  EXPECT_NE(first.find("[#####...............] trial 50 of 200"),
            std::string::npos)
      << first;
  EXPECT_EQ(first.find('\x1b'), std::string::npos) << "nothing to rewrite yet";
  const auto lines = std::count(first.begin(), first.end(), '\n');
  out.str("");
  display.Note("a note");
  EXPECT_EQ(out.str(), "\x1b[" + std::to_string(lines) + "A\r\x1b[Ja note\n");
  out.str("");
  display.Update(RunningJob(50));
  EXPECT_EQ(out.str(), first) << "below the note, nothing is erased";
}

v1::Job SeveralTasks(int tasks) {
  v1::Job job = RunningJob(50);
  for (int i = 1; i < tasks; ++i) {
    v1::TaskStatus* task = job.add_tasks();
    *task = job.tasks(0);
    task->set_workload("softmax(rows=" + std::to_string(i) + ",cols=64)");
  }
  return job;
}

TEST(Progress, SeveralTasksHaveOneLineEachBelowTheJobs) {
  std::ostringstream out;
  const FakeClock clock;
  ProgressDisplay display(/*enabled=*/true, /*terminal=*/true, clock, out);
  v1::Job job = SeveralTasks(3);
  job.mutable_tasks(2)->set_state(v1::JOB_STATE_PAUSED);
  job.mutable_tasks(2)->set_reason("the default failed");
  display.Update(job);
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_EQ(text.find("job 1: 2 of 3 tasks go on, 1 paused; trial 150 of 600, "
                      "22.5/s, 15 s left\n"),
            0u)
      << text;
  EXPECT_NE(text.find("  softmax(rows=1,cols=64) on zn...  trial 50 of 200, "
                      "11.2/s, 15 s left"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("paused, trial 50 of 200"), std::string::npos) << text;
}

// A bound by minutes counts as one by trials does: the server has put both into
// what remains of a task.
TEST(Progress, AJobHasTheTimeLeftOfItsLongestTask) {
  v1::Job job = SeveralTasks(3);
  job.mutable_tasks(0)->set_budget_trials(0);
  job.mutable_tasks(0)->set_remaining_ms(61'000);
  job.mutable_tasks(1)->set_remaining_ms(3'000);
  job.mutable_tasks(2)->set_state(v1::JOB_STATE_PAUSED);
  job.mutable_tasks(2)->set_remaining_ms(500'000);
  EXPECT_TRUE(absl::EndsWith(JobLine(job), "/s, 1 min 1 s left"))
      << JobLine(job);
  job.mutable_tasks(1)->set_remaining_ms(-1);
  EXPECT_TRUE(absl::EndsWith(JobLine(job), "/s")) << JobLine(job);
}

TEST(Progress, TasksThatDoNotFitAreCounted) {
  std::ostringstream out;
  const FakeClock clock;
  ProgressDisplay display(/*enabled=*/true, /*terminal=*/true, clock, out);
  display.Update(SeveralTasks(1000));
  const std::string text = out.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24) << text;
  EXPECT_NE(text.find(" more tasks\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace regatta::cli

// Jobs of several tasks: budgets and weights, gains, pauses and resuming.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/outcome_names.h"
#include "server/job/finals.h"
#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kClass;
using testing::kTargetText;
using testing::Measurement;
using testing::ServerWorld;
using testing::SimulatedFleet;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";
constexpr char kSoftmax[] = "softmax(rows=64,cols=256)";
constexpr char kSmall[] = "matmul(m=64,n=64,k=64)";

v1::TaskRequest* AddTask(v1::SubmitJobRequest* request,
                         const std::string& workload) {
  v1::TaskRequest* task = request->add_tasks();
  task->set_workload(workload);
  task->add_device_classes(kClass);
  return task;
}

bool IsDefault(ServerWorld* world, const v1::TrialSpec& spec) {
  const auto space =
      world->landscapes().SpaceFor(spec.workload(), spec.target(), 1);
  return spec.schedule().text() == space->Print(space->Default());
}

TEST(JobBudget, AJobWideOneIsDividedByWeightAmongTasksWithoutTheirOwn) {
  ServerWorld world;
  v1::SubmitJobRequest request;
  AddTask(&request, kMatmul)->set_weight(2);
  AddTask(&request, kSoftmax);
  AddTask(&request, kSmall)->set_trials(7);
  request.set_trials(100);
  const v1::Job job = world.Job(world.Submit(request));
  ASSERT_EQ(job.tasks_size(), 3);
  EXPECT_EQ(job.tasks(0).budget_trials(), 67);
  EXPECT_EQ(job.tasks(1).budget_trials(), 33);
  EXPECT_EQ(job.tasks(2).budget_trials(), 7);
  EXPECT_EQ(job.tasks(0).weight(), 2);
  EXPECT_EQ(job.tasks(1).weight(), 1);
  for (const v1::Work& work : world.fleet().submitted()) {
    EXPECT_EQ(work.task_weight(), work.trials(0).task() == 0 ? 2 : 1);
    EXPECT_EQ(work.job_weight(), 1);
  }
}

TEST(JobBudget, SharesOfTrialsAddUpAndLeaveNoTaskWithout) {
  ServerWorld world;
  world.jobs().Step();
  for (const int64_t total : {5, 6, 7, 99, 1000}) {
    v1::SubmitJobRequest request;
    const double weights[] = {1000, 0.001, 1, 3, 0.5};
    int i = 0;
    for (const double weight : weights) {
      AddTask(&request, absl::StrCat("matmul(m=", 64 + ++i, ",n=64,k=64)"))
          ->set_weight(weight);
    }
    request.set_trials(total);
    const auto job = world.jobs().Submit(request);
    ASSERT_TRUE(job.ok()) << job.status();
    int64_t sum = 0;
    for (const v1::TaskStatus& task : job->tasks()) {
      EXPECT_GE(task.budget_trials(), 1);
      sum += task.budget_trials();
    }
    EXPECT_EQ(sum, total);
    ASSERT_TRUE(world.jobs().Cancel(job->job_id()).ok());
  }
  v1::SubmitJobRequest few;
  for (int m : {8, 9, 10}) {
    AddTask(&few, absl::StrCat("matmul(m=", m, ",n=64,k=64)"));
  }
  few.set_trials(2);
  const auto refused = world.jobs().Submit(few);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("3 tasks together"));
}

TEST(JobBudget, TrialsForAllTasksNeedOneWithoutItsOwn) {
  ServerWorld world;
  world.jobs().Step();
  v1::SubmitJobRequest request;
  AddTask(&request, kMatmul)->set_trials(5);
  AddTask(&request, kSmall)->set_minutes(1);
  request.set_trials(100);
  const auto refused = world.jobs().Submit(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("trials is 100"));
  EXPECT_TRUE(world.jobs().List()->empty());
}

TEST(JobBudget, JobWideMinutesBoundEveryTask) {
  ServerWorld world;
  v1::SubmitJobRequest request;
  AddTask(&request, kMatmul)->set_trials(100'000);
  AddTask(&request, kSoftmax)->set_minutes(500);
  AddTask(&request, kSmall)->set_trials(3);
  AddTask(&request, "matmul(m=48,n=64,k=64)")->set_minutes(0.1);
  request.set_minutes(0.2);
  const int64_t id = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.tasks(0).ended_by(), "minutes");
  EXPECT_EQ(job.tasks(0).budget_trials(), 100'000);
  EXPECT_LT(job.tasks(0).trials(), 100'000);
  EXPECT_EQ(job.tasks(0).budget_minutes(), 0.2);
  EXPECT_EQ(job.tasks(1).ended_by(), "minutes");
  EXPECT_EQ(job.tasks(1).budget_minutes(), 0.2);
  EXPECT_EQ(job.tasks(2).ended_by(), "trials");
  EXPECT_EQ(job.tasks(2).trials(), 3);
  EXPECT_EQ(job.tasks(3).budget_minutes(), 0.1);
}

TEST(JobBudget, TheEndSaysWhichBoundItWas) {
  ServerWorld world;
  v1::SubmitJobRequest request;
  AddTask(&request, kMatmul)->set_trials(20);
  AddTask(&request, kSoftmax)->set_minutes(0.2);
  const int64_t id = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.tasks(0).ended_by(), "trials");
  EXPECT_EQ(job.tasks(1).ended_by(), "minutes");
  EXPECT_GT(job.tasks(0).device_ns(), 20 * 50'000'000ll);
}

TEST(JobGain, ATaskEndsOnceTheGainIsConfirmed) {
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  // The tenth candidate and later ones are twice as fast.
  options.measure = [&](const v1::TrialSpec& spec) {
    if (IsDefault(at, spec)) return Measurement{.time_ns = 1'000'000};
    const bool late = spec.kind() != v1::TRIAL_KIND_CANDIDATE;
    return Measurement{.time_ns =
                           late || spec.ordinal() > 10 ? 500'000 : 950'000};
  };
  ServerWorld world(options);
  at = &world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 200);
  request.mutable_tasks(0)->set_until_gain_percent(50);
  const int64_t id = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(task.ended_by(), "until_gain");
  EXPECT_EQ(task.until_gain_percent(), 50);
  EXPECT_TRUE(task.confirmed());
  EXPECT_GE(task.speedup_low(), 1.5);
  EXPECT_GE(task.trials(), 10);
  EXPECT_LT(task.trials(), 30);
  world.CheckInvariants(id);
}

TEST(JobGain, AGainThatIsNotConfirmedDoesNotEndIt) {
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  // Screening flatters: 2x there, 1.2x in interleaved comparisons.
  options.measure = [&](const v1::TrialSpec& spec) {
    if (IsDefault(at, spec)) return Measurement{.time_ns = 1'000'000};
    return Measurement{.time_ns = spec.kind() == v1::TRIAL_KIND_CANDIDATE
                                      ? 500'000 + spec.ordinal()
                                      : 830'000};
  };
  options.noise = 0;
  ServerWorld world(options);
  at = &world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 40);
  request.mutable_tasks(0)->set_until_gain_percent(50);
  const int64_t id = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(task.ended_by(), "trials");
  EXPECT_EQ(task.trials(), 40);
  EXPECT_NEAR(task.speedup(), 1.2, 0.02);
  int confirmations = 0;
  for (const StoredRecord& record : world.Records(kMatmul)) {
    const v1::TrialSpec& spec = record.result.spec();
    confirmations +=
        spec.kind() == v1::TRIAL_KIND_CONFIRM && IsDefault(&world, spec);
  }
  EXPECT_LE(confirmations, 4) << "it asks again only for something faster";
  EXPECT_GE(confirmations, 2);
  world.CheckInvariants(id);
}

TEST(JobGain, SurvivesRestartsAtAnyTime) {
  SimulatedFleet::Options options;
  options.seed = 5;
  ServerWorld world(options);
  v1::SubmitJobRequest request = world.Request(kMatmul, 80);
  request.mutable_tasks(0)->set_until_gain_percent(15);
  const int64_t id = world.Submit(request);
  for (int i = 0; i < 400 && !IsEnded(world.Job(id).state()); ++i) {
    world.Turn();
    if (i % 7 == 3) world.Restart();
  }
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE) << task.reason();
  EXPECT_LE(task.trials(), 80);
  world.CheckInvariants(id);
}

TEST(JobPause, OneTasksTroubleLeavesTheOthersAlone) {
  SimulatedFleet::Options options;
  ServerWorld* at = nullptr;
  options.measure = [&](const v1::TrialSpec& spec) {
    if (spec.workload() == kSoftmax) {
      return Measurement{.outcome = v1::OUTCOME_OUT_OF_MEMORY,
                         .detail = "needs 9.00 GiB; has 4.00 GiB"};
    }
    return Measurement{.time_ns = at->landscapes().TimeNs(spec)};
  };
  ServerWorld world(options);
  at = &world;
  v1::SubmitJobRequest request;
  AddTask(&request, kSoftmax)->set_trials(20);
  AddTask(&request, kMatmul)->set_trials(20);
  const int64_t id = world.Submit(request);
  bool shown = false;
  for (int i = 0; i < 200 && world.Job(id).state() == v1::JOB_STATE_RUNNING;
       ++i) {
    world.Turn();
    const v1::Job now = world.Job(id);
    shown = shown || (now.state() == v1::JOB_STATE_RUNNING &&
                      now.reason() == "1 of 2 tasks paused; the others go on");
  }
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_TRUE(shown);
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(job.tasks(0).state(), v1::JOB_STATE_PAUSED);
  EXPECT_THAT(job.tasks(0).reason(), HasSubstr("needs 9.00 GiB"));
  EXPECT_EQ(job.tasks(1).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(job.tasks(1).trials(), 20);
}

TEST(JobResume, GoesOnAfterTheCauseWasMended) {
  bool broken = true;
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  options.measure = [&](const v1::TrialSpec& spec) {
    if (broken) {
      return Measurement{.outcome = v1::OUTCOME_CRASHED, .detail = "disk"};
    }
    return Measurement{.time_ns = at->landscapes().TimeNs(spec)};
  };
  ServerWorld world(options);
  at = &world;
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  ASSERT_TRUE(world.RunToEnd(id));
  ASSERT_EQ(world.Job(id).state(), v1::JOB_STATE_PAUSED);
  // Resumed before it was mended, it pauses again, with the news.
  ASSERT_TRUE(world.jobs().Resume(id).ok());
  ASSERT_TRUE(world.RunToEnd(id));
  ASSERT_EQ(world.Job(id).state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(world.Job(id).tasks(0).outcomes().at("crashed"), 2);
  broken = false;
  world.Restart();  // paused over a restart, too
  const auto resumed = world.jobs().Resume(id);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->state(), v1::JOB_STATE_RUNNING);
  world.Turn();
  world.Restart();  // what was forgiven stays so
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE) << task.reason();
  EXPECT_EQ(task.trials(), 30);
  EXPECT_TRUE(task.confirmed());
  EXPECT_GT(task.speedup(), 1);
  world.CheckInvariants(id);
}

TEST(JobResume, CandidatesThatFailedAlikeMayBeTriedAgain) {
  bool broken = true;
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  options.measure = [&](const v1::TrialSpec& spec) {
    if (broken && spec.kind() == v1::TRIAL_KIND_CANDIDATE) {
      return Measurement{.outcome = v1::OUTCOME_TIMED_OUT, .detail = "20 s"};
    }
    return Measurement{.time_ns = at->landscapes().TimeNs(spec)};
  };
  ServerWorld world(options);
  at = &world;
  const int64_t id = world.Submit(world.Request(kMatmul, 40));
  ASSERT_TRUE(world.RunToEnd(id));
  ASSERT_EQ(world.Job(id).state(), v1::JOB_STATE_PAUSED);
  broken = false;
  ASSERT_TRUE(world.jobs().Resume(id).ok());
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE) << task.reason();
  EXPECT_EQ(task.trials(), 40) << "failed ones count against the budget";
  std::map<std::string, std::set<v1::Outcome>> outcomes;
  for (const StoredRecord& record : world.Records(kMatmul)) {
    outcomes[record.result.spec().schedule().text()].insert(
        record.result.outcome());
  }
  int retried = 0;
  for (const auto& [schedule, seen] : outcomes) {
    retried += seen.count(v1::OUTCOME_TIMED_OUT) && seen.count(v1::OUTCOME_OK);
  }
  EXPECT_GE(retried, 4) << "good first guesses are not lost";
}

TEST(JobResume, OnlyWhatIsPausedCanBeResumed) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 10));
  EXPECT_EQ(world.jobs().Resume(id).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(world.RunToEnd(id));
  const auto done = world.jobs().Resume(id);
  EXPECT_EQ(done.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(done.status().message()), HasSubstr("it is done"));
  EXPECT_EQ(world.jobs().Resume(id + 1).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(NoiseFloor, UnknownAndAbsurdOnesAreAssumedAndSaid) {
  EXPECT_EQ(UsableNoiseFloor(0.03).floor, 0.03);
  EXPECT_EQ(UsableNoiseFloor(0.03).note, "");
  EXPECT_EQ(UsableNoiseFloor(0.0).floor, 0);
  EXPECT_EQ(UsableNoiseFloor(0.20).floor, 0.20);
  EXPECT_EQ(UsableNoiseFloor(std::nullopt).floor, 0.05);
  EXPECT_THAT(UsableNoiseFloor(std::nullopt).note,
              HasSubstr("was not measured; 5 % is assumed"));
  EXPECT_EQ(UsableNoiseFloor(66.32).floor, 0.05);
  EXPECT_THAT(UsableNoiseFloor(66.32).note, HasSubstr("6632 %"));
  EXPECT_EQ(UsableNoiseFloor(-1.0).floor, 0.05);
  EXPECT_EQ(UsableNoiseFloor(std::nan("")).floor, 0.05);
}

TEST(NoiseFloor, AnAbsurdOneDoesNotKeepAGainFromBeingPublished) {
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  options.measure = [&](const v1::TrialSpec& spec) {
    return Measurement{.time_ns = IsDefault(at, spec) ? 1'200'000 : 1'000'000};
  };
  ServerWorld world(options);
  at = &world;
  world.fleet().boards()[0].noise_floor = 66.32;
  world.fleet().SendFleet();
  const int64_t id = world.Submit(world.Request(kMatmul, 20));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_NEAR(task.speedup(), 1.2, 0.02);
  EXPECT_THAT(task.reason(), HasSubstr("6632 %"));
}

TEST(JobRequest, AWorkloadThatNoBoardCanHoldIsRefusedWithNumbers) {
  ServerWorld world;
  world.fleet().boards()[0].memory_bytes = int64_t{8} << 30;
  world.fleet().SendFleet();
  world.jobs().Step();
  v1::SubmitJobRequest request;
  AddTask(&request, kMatmul);
  AddTask(&request, "matmul(m=40000,n=40000,k=40000)");
  const auto refused = world.jobs().Submit(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::AllOf(HasSubstr("tasks[1]"), HasSubstr("23.8 GiB"),
                               HasSubstr("8.0 GiB")));
  EXPECT_TRUE(world.jobs().List()->empty());
}

TEST(JobRequest, WithoutAClassLostBoardsAreLeftOut) {
  ServerWorld world;
  world.fleet().AddBoard({.id = "gone",
                          .device_class = "old-4c",
                          .target = kTargetText,
                          .presence = v1::PRESENCE_LOST});
  world.fleet().SendFleet();
  world.jobs().Step();
  v1::SubmitJobRequest request;
  request.add_tasks()->set_workload(kMatmul);
  auto job = world.jobs().Submit(request);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->tasks_size(), 1);
  EXPECT_EQ(job->tasks(0).device_class(), kClass);
  world.fleet().boards()[0].presence = v1::PRESENCE_LOST;
  world.fleet().SendFleet();
  world.jobs().Step();
  job = world.jobs().Submit(request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->tasks_size(), 2) << "rather wait than refuse";
}

}  // namespace
}  // namespace regatta

// A job from submission to verdict, against simulated boards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "proto/outcome_names.h"
#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using testing::kClass;
using testing::kTargetText;
using ::testing::Le;
using testing::Measurement;
using testing::ServerWorld;
using testing::SimulatedFleet;
using testing::WorkloadOf;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";

v1::TaskStatus OnlyTask(const v1::Job& job) {
  EXPECT_EQ(job.tasks_size(), 1);
  return job.tasks_size() == 1 ? job.tasks(0) : v1::TaskStatus();
}

TEST(Job, EndsWithAConfirmedScheduleThatIsFasterThanTheDefault) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 60));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  const v1::TaskStatus task = OnlyTask(job);
  EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.reason();
  EXPECT_EQ(task.trials(), 60);
  EXPECT_TRUE(task.confirmed());
  EXPECT_LT(task.best_ns(), task.default_ns());
  EXPECT_GT(task.speedup_low(), 1.01);
  EXPECT_LE(task.speedup_low(), task.speedup());
  EXPECT_LE(task.speedup(), task.speedup_high());
  // What it says is what the boards' landscape says.
  const auto space = world.landscapes().SpaceFor(kMatmul, kTargetText, 1);
  v1::TrialSpec best;
  best.set_workload(task.workload());
  best.set_target(kTargetText);
  best.mutable_policy()->set_threads(1);
  best.mutable_schedule()->set_text(task.schedule());
  v1::TrialSpec base = best;
  base.mutable_schedule()->set_text(space->Print(space->Default()));
  const double truth = static_cast<double>(world.landscapes().TimeNs(base)) /
                       static_cast<double>(world.landscapes().TimeNs(best));
  EXPECT_NEAR(task.speedup(), truth, 0.01 * truth);
  world.CheckInvariants(id);
}

TEST(Job, MeasuresTheDefaultThenCandidatesThenRacesThenConfirmsOnOtherInputs) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 40));
  ASSERT_TRUE(world.RunToEnd(id));
  std::map<v1::TrialKind, int> kinds;
  std::map<v1::TrialKind, std::set<uint64_t>> seeds;
  v1::TrialKind before = v1::TRIAL_KIND_DEFAULT;
  for (const StoredRecord& record : world.Records(kMatmul)) {
    const v1::TrialSpec& spec = record.result.spec();
    EXPECT_GE(spec.kind(), before) << "phases are in order";
    before = spec.kind();
    ++kinds[spec.kind()];
    seeds[spec.kind()].insert(spec.input_seed());
  }
  EXPECT_EQ(kinds[v1::TRIAL_KIND_DEFAULT], 1);
  EXPECT_EQ(kinds[v1::TRIAL_KIND_CANDIDATE], 40);
  EXPECT_EQ(kinds[v1::TRIAL_KIND_RACE], 6);
  EXPECT_EQ(kinds[v1::TRIAL_KIND_CONFIRM], 3);  // default and two finalists
  EXPECT_EQ(seeds[v1::TRIAL_KIND_CANDIDATE], seeds[v1::TRIAL_KIND_DEFAULT]);
  EXPECT_EQ(seeds[v1::TRIAL_KIND_CONFIRM].size(), 1u);
  EXPECT_NE(seeds[v1::TRIAL_KIND_CONFIRM], seeds[v1::TRIAL_KIND_DEFAULT]);
  for (const v1::Work& work : world.fleet().submitted()) {
    const bool many = work.trials_size() > 1;
    EXPECT_EQ(work.mode(), many ? v1::ASSIGNMENT_MODE_INTERLEAVE
                                : v1::ASSIGNMENT_MODE_SCREEN);
    EXPECT_EQ(work.work_id(), work.trials(0).trial_id());
  }
}

TEST(Job, WhenNothingIsFasterTheDefaultStaysWithASpeedUpOfOne) {
  SimulatedFleet::Options options;
  options.measure = [](const v1::TrialSpec&) {
    return Measurement{.time_ns = 500'000};
  };
  ServerWorld world(options);
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = OnlyTask(world.Job(id));
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(task.speedup(), 1);
  EXPECT_LE(task.speedup_low(), 1);
  EXPECT_GE(task.speedup_high(), 1);
  EXPECT_GT(task.speedup_low(), 0.98);
  EXPECT_THAT(task.reason(), HasSubstr("no schedule was faster"));
  const auto space = world.landscapes().SpaceFor(kMatmul, kTargetText, 1);
  EXPECT_EQ(task.schedule(), space->Print(space->Default()));
  world.CheckInvariants(id);
}

TEST(Job, AGainBelowOnePerCentIsNotPublished) {
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  options.measure = [&](const v1::TrialSpec& spec) {
    const auto space =
        at->landscapes().SpaceFor(spec.workload(), spec.target(), 1);
    const bool base = spec.schedule().text() == space->Print(space->Default());
    return Measurement{.time_ns = base ? 1'006'000 : 1'000'000};
  };
  ServerWorld world(options);
  at = &world;
  const int64_t id = world.Submit(world.Request(kMatmul, 20));
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_EQ(OnlyTask(world.Job(id)).speedup(), 1);
}

TEST(Job, ADefaultThatFailsPausesTheTaskAndShowsTheError) {
  SimulatedFleet::Options options;
  options.measure = [](const v1::TrialSpec&) {
    return Measurement{.outcome = v1::OUTCOME_COMPILE_ERROR,
                       .detail = "no instruction for it"};
  };
  ServerWorld world(options);
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_THAT(job.reason(),
              AllOf(HasSubstr("default"), HasSubstr("compile_error"),
                    HasSubstr("no instruction for it")));
  EXPECT_EQ(OnlyTask(job).trials(), 0);
  EXPECT_EQ(world.Records(kMatmul).size(), 1u);
}

SimulatedFleet::Options CandidatesFail(
    std::function<Measurement(int64_t ordinal)> failure) {
  SimulatedFleet::Options options;
  options.measure = [failure](const v1::TrialSpec& spec) {
    return spec.kind() == v1::TRIAL_KIND_DEFAULT
               ? Measurement{.time_ns = 1'000'000}
               : failure(spec.ordinal());
  };
  return options;
}

TEST(Job, EightCandidatesThatFailAlikePauseTheTask) {
  ServerWorld world(CandidatesFail([](int64_t ordinal) {
    return Measurement{
        .outcome = v1::OUTCOME_WRONG_RESULT,
        .detail = "element " + std::to_string(ordinal) + " is 0.25"};
  }));
  const int64_t id = world.Submit(world.Request(kMatmul, 100));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_THAT(job.reason(), HasSubstr("wrong_result"));
  EXPECT_THAT(OnlyTask(job).trials(), AllOf(Ge(8), Le(12)));
  world.CheckInvariants(id);
}

TEST(Job, CandidatesThatFailInDifferentWaysDoNotPauseIt) {
  ServerWorld world(CandidatesFail([](int64_t ordinal) {
    return Measurement{.outcome = ordinal % 2 == 0 ? v1::OUTCOME_CRASHED
                                                   : v1::OUTCOME_TIMED_OUT};
  }));
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = OnlyTask(world.Job(id));
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(task.trials(), 30);
  EXPECT_EQ(task.speedup(), 1);  // the default is all there is
  EXPECT_THAT(task.reason(), HasSubstr("no candidate gave a verified time"));
}

TEST(Job, AFinalistThatIsWrongOnTheSecondInputsIsNeverPublished) {
  ServerWorld* at = nullptr;
  SimulatedFleet::Options options;
  options.measure = [&](const v1::TrialSpec& spec) {
    Measurement measured{.time_ns = at->landscapes().TimeNs(spec)};
    const auto space =
        at->landscapes().SpaceFor(spec.workload(), spec.target(), 1);
    const bool base = spec.schedule().text() == space->Print(space->Default());
    if (spec.kind() == v1::TRIAL_KIND_CONFIRM && !base) {
      measured.outcome = v1::OUTCOME_WRONG_RESULT;
    }
    return measured;
  };
  ServerWorld world(options);
  at = &world;
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_EQ(OnlyTask(world.Job(id)).speedup(), 1);
  world.CheckInvariants(id);
  const auto best = world.plain_log().Best(world.Key(kMatmul));
  ASSERT_TRUE(best.ok() && best->has_value());
  const auto space = world.landscapes().SpaceFor(kMatmul, kTargetText, 1);
  EXPECT_EQ((*best)->record.result.spec().schedule().text(),
            space->Print(space->Default()));
}

TEST(Job, ASpaceSmallerThanTheBudgetIsExhausted) {
  ServerWorld world;
  const char* tiny = "C[i] = A[i] + B[i] where i=64";
  int legal = 0;
  world.landscapes()
      .SpaceFor(tiny, kTargetText, 1)
      ->ForEach([&](const Schedule&) { return ++legal > 0; });
  ASSERT_THAT(legal, AllOf(Ge(4), Le(90)));
  const int64_t id = world.Submit(world.Request(tiny, 100));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_EXHAUSTED) << job.reason();
  EXPECT_EQ(OnlyTask(job).trials(), legal - 1);  // the default is not one
  world.CheckInvariants(id);
}

TEST(Job, OneOfTheMinutesGoToTheSearchAndTheRestToTheFinals) {
  ServerWorld world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 0);
  request.mutable_tasks(0)->set_trials(0);
  request.mutable_tasks(0)->set_minutes(1);
  const absl::Time start = world.clock().Wall();
  const int64_t id = world.Submit(request);
  world.Turn();
  world.Turn();
  const v1::TaskStatus running = OnlyTask(world.Job(id));
  EXPECT_THAT(running.remaining_ms(), AllOf(Ge(55'000), Le(60'000)));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = OnlyTask(world.Job(id));
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE) << task.reason();
  EXPECT_EQ(task.budget_trials(), 0);
  // A trial takes 100 ms; 48 s are left after a fifth is kept back.
  EXPECT_THAT(task.trials(), AllOf(Ge(470), Le(490)));
  EXPECT_LT(world.clock().Wall() - start, absl::Minutes(1));
  world.CheckInvariants(id);
}

TEST(Job, LostTrialsAreAskedAgainAndCountForNothing) {
  SimulatedFleet::Options options;
  options.lose = 0.3;
  ServerWorld world(options);
  const int64_t id = world.Submit(world.Request(kMatmul, 50));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = OnlyTask(world.Job(id));
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE) << task.reason();
  EXPECT_EQ(task.trials(), 50);
  EXPECT_GT(task.outcomes().at("agent_lost"), 3);
  world.CheckInvariants(id);
}

TEST(Job, BoardsThatLoseEverythingPauseTheTask) {
  SimulatedFleet::Options options;
  options.lose = 1;
  ServerWorld world(options);
  const int64_t id = world.Submit(world.Request(kMatmul, 50));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_THAT(job.reason(), HasSubstr("agent_lost"));
  EXPECT_EQ(OnlyTask(job).outcomes().at("agent_lost"), 10);
}

TEST(Job, OneTaskFailsAndTheOthersGoOn) {
  SimulatedFleet::Options options;
  ServerWorld* at = nullptr;
  options.measure = [&](const v1::TrialSpec& spec) {
    Measurement measured{.time_ns = at->landscapes().TimeNs(spec)};
    if (spec.workload().find("matmul") == 0) {
      measured.outcome = v1::OUTCOME_CRASHED;
    }
    return measured;
  };
  ServerWorld world(options);
  at = &world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 20);
  *request.add_tasks() = request.tasks(0);
  request.mutable_tasks(1)->set_workload("softmax(rows=64,cols=64)");
  const int64_t id = world.Submit(request);
  for (int i = 0;
       i < 200 && world.Job(id).tasks(1).state() != v1::JOB_STATE_DONE; ++i) {
    world.Turn();
  }
  const v1::Job job = world.Job(id);
  EXPECT_EQ(job.tasks(0).state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(job.tasks(1).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_THAT(job.reason(), HasSubstr("matmul"));
}

TEST(Job, ADeviceAlwaysHasMoreWorkThanItHolds) {
  ServerWorld world;
  world.fleet().boards()[0].credit = 3;
  world.fleet().SendFleet();
  const int64_t id = world.Submit(world.Request(kMatmul, 40));
  world.Turn();  // the default
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(world.fleet().held().size(), 5u);
    world.Turn();
  }
  ASSERT_TRUE(world.RunToEnd(id));
  world.CheckInvariants(id);
}

TEST(Job, PriorityAndIncumbentTravelWithTheWork) {
  ServerWorld world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 20);
  request.set_priority(7);
  const int64_t id = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(id));
  int64_t last = 0;
  for (const v1::Work& work : world.fleet().submitted()) {
    EXPECT_EQ(work.priority(), 7);
    EXPECT_EQ(work.compiler_version(), testing::kCompiler);
    if (work.trials(0).kind() != v1::TRIAL_KIND_CANDIDATE) {
      EXPECT_EQ(work.trials(0).incumbent_ns(), 0);
      continue;
    }
    EXPECT_GT(work.trials(0).incumbent_ns(), 0);
    if (last > 0) {
      EXPECT_LE(work.trials(0).incumbent_ns(), last);
    }
    last = work.trials(0).incumbent_ns();
  }
}

TEST(Job, ShowsTheRateTheTimeLeftThePeakAndWhereTheTimeWent) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 300));
  for (int i = 0; i < 101; ++i) world.Turn();
  const v1::TaskStatus task = OnlyTask(world.Job(id));
  EXPECT_EQ(task.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(task.phase(), "search");
  EXPECT_EQ(task.trials(), 100);
  EXPECT_NEAR(task.trials_per_s(), 10, 0.2);  // a trial takes 100 ms
  EXPECT_NEAR(task.remaining_ms(), 20'000, 400);
  EXPECT_EQ(task.peak_flops_per_s(), 1e11);
  EXPECT_EQ(task.bandwidth_bytes_per_s(), 2e10);
  EXPECT_EQ(task.flops(), WorkloadOf(kMatmul).Flops());
  EXPECT_EQ(task.times().build_ns(), 20'000'000);
  EXPECT_EQ(task.times().wait_ns(), 1'000'000);
  EXPECT_EQ(task.times().verify_ns(), 2'000'000);
  EXPECT_EQ(task.times().time_ns(), 50'000'000);
  EXPECT_FALSE(task.confirmed());
  EXPECT_EQ(task.speedup_low(), 0);  // unknown before the confirmation
  world.clock().Advance(absl::Seconds(30));
  world.jobs().Step();
  EXPECT_EQ(OnlyTask(world.Job(id)).trials_per_s(), 0);
}

TEST(Job, CancellingEndsItAtOnceAndLateResultsAreStillStored) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 100));
  for (int i = 0; i < 10; ++i) world.Turn();
  const size_t held = world.fleet().held().size();
  ASSERT_GT(held, 0u);
  const auto cancelled = world.jobs().Cancel(id);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_GT(cancelled->ended_unix_ms(), 0);
  ASSERT_EQ(world.fleet().cancels().size(), 1u);
  EXPECT_EQ(world.fleet().cancels()[0].job_id(), id);
  world.CheckInvariants(id);
  EXPECT_EQ(world.Job(id).tasks(0).outcomes().at("cancelled"),
            static_cast<int64_t>(held));
  const auto again = world.jobs().Cancel(id);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(world.jobs().Cancel(77).status().code(),
            absl::StatusCode::kNotFound);
  // The same after a restart.
  world.Kill();
  world.Start();
  EXPECT_EQ(world.Job(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(world.jobs().Cancel(id).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Job, TheSameSeedAndAnswersGiveTheSameTrials) {
  const auto run = [](uint64_t seed) {
    SimulatedFleet::Options options;
    options.noise = 0;
    ServerWorld world(options);
    v1::SubmitJobRequest request = world.Request(kMatmul, 40);
    request.set_seed(seed);
    EXPECT_TRUE(world.RunToEnd(world.Submit(request)));
    std::vector<std::string> texts;
    for (const StoredRecord& record : world.Records(kMatmul)) {
      texts.push_back(record.result.spec().schedule().text());
    }
    return texts;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(Job, WatchersSeeEveryChangeAndTheEnd) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 5));
  int64_t version = 0;
  auto job = world.jobs().WaitForChange(id, absl::ZeroDuration(), &version);
  ASSERT_TRUE(job.ok());
  EXPECT_GT(version, 0);
  const int64_t first = version;
  // Nothing happened: the same again, after the timeout.
  ASSERT_TRUE(
      world.jobs().WaitForChange(id, absl::Milliseconds(1), &version).ok());
  EXPECT_EQ(version, first);
  world.Turn();
  job = world.jobs().WaitForChange(id, absl::ZeroDuration(), &version);
  EXPECT_GT(version, first);
  EXPECT_GT(OnlyTask(*job).default_ns(), 0);
  ASSERT_TRUE(world.RunToEnd(id));
  job = world.jobs().WaitForChange(id, absl::ZeroDuration(), &version);
  EXPECT_EQ(job->state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(world.jobs()
                .WaitForChange(99, absl::ZeroDuration(), &version)
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  world.jobs().Close();
  EXPECT_EQ(world.jobs()
                .WaitForChange(id, absl::InfiniteDuration(), &version)
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace regatta

// Which requests are taken, with what filled in, and what the others are told;
// which boards they reach and what is shown while none can.
#include "server/job/job_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kClass;
using testing::kOtherTargetText;
using testing::kTargetText;
using testing::ServerWorld;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";

struct Refusal {
  const char* what;
  void (*change)(v1::SubmitJobRequest*);
  absl::StatusCode code;
  const char* words;
};

const Refusal kRefusals[] = {
    {"no task", [](auto* r) { r->clear_tasks(); },
     absl::StatusCode::kInvalidArgument, "tasks is empty"},
    {"unknown operator",
     [](auto* r) { r->mutable_tasks(0)->set_workload("matmull(m=1,n=1,k=1)"); },
     absl::StatusCode::kInvalidArgument, "workload: "},
    {"zero extent",
     [](auto* r) { r->mutable_tasks(0)->set_workload("matmul(m=0,n=1,k=1)"); },
     absl::StatusCode::kInvalidArgument, "workload: "},
    {"negative trials", [](auto* r) { r->mutable_tasks(0)->set_trials(-1); },
     absl::StatusCode::kInvalidArgument, "trials is -1"},
    {"too many trials",
     [](auto* r) { r->mutable_tasks(0)->set_trials(1'000'001); },
     absl::StatusCode::kInvalidArgument, "1000000"},
    {"negative minutes",
     [](auto* r) {
       r->mutable_tasks(0)->set_trials(0);
       r->mutable_tasks(0)->set_minutes(-2);
     },
     absl::StatusCode::kInvalidArgument, "minutes is -2"},
    {"endless minutes",
     [](auto* r) {
       r->mutable_tasks(0)->set_trials(0);
       r->mutable_tasks(0)->set_minutes(
           std::numeric_limits<double>::infinity());
     },
     absl::StatusCode::kInvalidArgument, "minutes is inf"},
    {"minutes that are no number",
     [](auto* r) {
       r->mutable_tasks(0)->set_trials(0);
       r->mutable_tasks(0)->set_minutes(
           std::numeric_limits<double>::quiet_NaN());
     },
     absl::StatusCode::kInvalidArgument, "minutes is nan"},
    {"both budgets", [](auto* r) { r->mutable_tasks(0)->set_minutes(2); },
     absl::StatusCode::kInvalidArgument, "both given"},
    {"unknown class",
     [](auto* r) { r->mutable_tasks(0)->set_device_classes(0, "m1-8c"); },
     absl::StatusCode::kNotFound, "sim-1c, znver4-2c"},
    {"more threads than cores",
     [](auto* r) { r->mutable_tasks(0)->mutable_policy()->set_threads(3); },
     absl::StatusCode::kFailedPrecondition, "has 2 cores"},
    {"negative threads",
     [](auto* r) { r->mutable_tasks(0)->mutable_policy()->set_threads(-1); },
     absl::StatusCode::kInvalidArgument, "policy.threads is -1"},
    {"unknown cache state",
     [](auto* r) {
       r->mutable_tasks(0)->mutable_policy()->set_cache(
           static_cast<v1::CacheState>(9));
     },
     absl::StatusCode::kInvalidArgument, "policy.cache is 9"},
    {"unknown strategy", [](auto* r) { r->set_strategy("no_such"); },
     absl::StatusCode::kInvalidArgument, "evolutionary, random"},
    {"endless name", [](auto* r) { r->set_name(std::string(201, 'x')); },
     absl::StatusCode::kInvalidArgument, "name has 201 bytes"},
    {"a name that steers terminals",
     [](auto* r) { r->set_name("\x1b[2J evil\r\nJob 99"); },
     absl::StatusCode::kInvalidArgument, "not \"\\x1b[2J evil\\r\\nJob 99\""},
    {"a name that turns text round",
     [](auto* r) {
       r->set_name(
           "a\xe2\x80\xae"
           "b");
     },
     absl::StatusCode::kInvalidArgument, "a\\u202eb"},
    {"the same task twice",
     [](auto* r) { *r->add_tasks() = v1::TaskRequest(r->tasks(0)); },
     absl::StatusCode::kInvalidArgument, "tasks[1] repeats"},
    {"an error in a later task",
     [](auto* r) {
       *r->add_tasks() = v1::TaskRequest(r->tasks(0));
       r->mutable_tasks(1)->set_trials(-5);
     },
     absl::StatusCode::kInvalidArgument, "tasks[1]: trials is -5"},
};

TEST(JobRequest, BadOnesAreRefusedWithWordsAndChangeNothing) {
  ServerWorld world;
  world.fleet().AddBoard({.id = "s",
                          .device_class = "sim-1c",
                          .target = kTargetText,
                          .simulated = true});
  world.fleet().SendFleet();
  world.jobs().Step();
  const int64_t writes = world.log().writes();
  for (const Refusal& refusal : kRefusals) {
    v1::SubmitJobRequest request = world.Request(kMatmul, 10);
    refusal.change(&request);
    const auto job = world.jobs().Submit(request);
    EXPECT_EQ(job.status().code(), refusal.code)
        << refusal.what << ": " << job.status();
    EXPECT_THAT(std::string(job.status().message()), HasSubstr(refusal.words))
        << refusal.what;
  }
  EXPECT_EQ(world.log().writes(), writes);
  EXPECT_TRUE(world.jobs().List()->empty());
}

TEST(JobRequest, WhatIsLeftOpenIsFilledIn) {
  ServerWorld world;
  world.fleet().AddBoard({.id = "arm",
                          .device_class = "neoverse-n1-4c",
                          .target = kOtherTargetText});
  world.fleet().AddBoard({.id = "s",
                          .device_class = "sim-1c",
                          .target = kTargetText,
                          .simulated = true});
  world.fleet().SendFleet();
  v1::SubmitJobRequest request;
  request.add_tasks()->set_workload("matmul( k=512, m=512, n=512 )");
  const v1::Job job = world.Job(world.Submit(request));
  EXPECT_EQ(job.strategy(), "evolutionary");
  EXPECT_NE(job.seed(), 0u);
  ASSERT_EQ(job.tasks_size(), 2);  // simulated boards only when named
  EXPECT_EQ(job.tasks(0).device_class(), "neoverse-n1-4c");
  EXPECT_EQ(job.tasks(1).device_class(), kClass);
  for (const v1::TaskStatus& task : job.tasks()) {
    EXPECT_EQ(task.workload(), kMatmul);
    EXPECT_EQ(task.budget_trials(), 200);
    EXPECT_EQ(task.policy().threads(), 1);
    EXPECT_EQ(task.policy().cache(), v1::CACHE_STATE_WARM);
  }
}

TEST(JobRequest, AClassThatOnlyImportedRecordsHaveIsRefused) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 1));
  ASSERT_TRUE(world.RunToEnd(id));
  v1::TrialResult imported = world.Records(kMatmul)[0].result;
  imported.mutable_spec()->set_trial_id("0123:1/0/0");
  imported.mutable_spec()->set_device_class("znver9-64c");
  imported.set_device_class("znver9-64c");
  imported.set_provenance("import:lab-b");
  ASSERT_TRUE(world.plain_log().Append({imported}, 1).ok());
  v1::SubmitJobRequest request = world.Request(kMatmul, 1);
  request.mutable_tasks(0)->set_device_classes(0, "znver9-64c");
  const auto job = world.jobs().Submit(request);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kNotFound) << job.status();
  EXPECT_THAT(std::string(job.status().message()),
              AllOf(HasSubstr("'znver9-64c'"), HasSubstr(kClass)));
  // Questions may name it.
  EXPECT_THAT(*world.jobs().LoggedClasses(/*imported=*/true),
              ElementsAre(kClass, "znver9-64c"));
}

TEST(JobRequest, WithoutABoardItIsRefusedUnlessAKnownClassIsNamed) {
  ServerWorld world({}, /*boards=*/false);
  v1::SubmitJobRequest request;
  request.add_tasks()->set_workload(kMatmul);
  world.jobs().Step();
  EXPECT_EQ(world.jobs().Submit(request).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(JobRequest, BeforeTheTrackerHasSpokenItIsToldToTryAgain) {
  ServerWorld world;
  world.Kill();
  testing::SimulatedFleet silent(&world.clock(), {});
  JobManagerOptions options;
  options.log = &world.log();
  options.dispatcher = &silent;
  options.clock = &world.clock();
  options.compiler_version = [](const Target&) { return "v"; };
  auto jobs = JobManager::Create(std::move(options));
  ASSERT_TRUE(jobs.ok());
  v1::SubmitJobRequest request;
  request.add_tasks()->set_workload(kMatmul);
  EXPECT_EQ((*jobs)->Submit(request).status().code(),
            absl::StatusCode::kUnavailable);
  request.mutable_tasks(0)->add_device_classes(kClass);
  EXPECT_EQ((*jobs)->Submit(request).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(JobWaits, SaysWhyNothingRunsAndGoesOnOnceItCan) {
  ServerWorld world;
  testing::SimulatedBoard& board = world.fleet().boards()[0];
  board.presence = v1::PRESENCE_LOST;
  world.fleet().SendFleet();
  const int64_t id = world.Submit(world.Request(kMatmul, 10));
  v1::Job job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job.reason(), "waiting: no znver4-2c board is online");

  board.presence = v1::PRESENCE_ONLINE;
  board.health = "draining: the result spool cannot be written: full";
  world.fleet().SendFleet();
  world.jobs().Step();
  EXPECT_EQ(
      world.Job(id).reason(),
      absl::StrCat("waiting: no znver4-2c board takes work; board ", board.id,
                   " is draining: the result spool cannot be written: "
                   "full"));
  board.health = "ok";

  board.presence = v1::PRESENCE_ONLINE;
  board.compiler = "0000/LLVM 18";
  world.fleet().SendFleet();
  world.jobs().Step();
  EXPECT_THAT(world.Job(id).reason(),
              AllOf(HasSubstr(testing::kCompiler), HasSubstr("0000/LLVM 18")));

  board.compiler = testing::kCompiler;
  world.fleet().SendFleet();
  world.jobs().Step();
  job = world.Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job.reason(), "");

  v1::WaitReport report;
  v1::JobWait* wait = report.add_jobs();
  wait->set_job_id(id);
  wait->set_device_class(kClass);
  wait->mutable_reason()->set_text("1 of 1 znver4-2c busy");
  world.jobs().OnWaitReport(report);
  world.jobs().Step();
  EXPECT_EQ(world.Job(id).reason(), "waiting: 1 of 1 znver4-2c busy");

  world.Turn();  // a result: something runs
  EXPECT_EQ(world.Job(id).reason(), "");
  ASSERT_TRUE(world.RunToEnd(id));
}

TEST(JobWaits, WithoutATrackerItSaysSo) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 10));
  world.fleet().Disconnect(/*tell=*/true);
  world.jobs().Step();
  EXPECT_THAT(world.Job(id).reason(), HasSubstr("no connection"));
  world.fleet().Connect(&world.jobs());
  world.jobs().Step();
  EXPECT_EQ(world.Job(id).reason(), "");
  ASSERT_TRUE(world.RunToEnd(id));
}

TEST(JobWaits, AClassThatOnlyTheLogKnowsIsWaitedFor) {
  ServerWorld world;
  const int64_t first = world.Submit(world.Request(kMatmul, 5));
  ASSERT_TRUE(world.RunToEnd(first));
  const testing::SimulatedBoard board = world.fleet().boards()[0];
  world.fleet().boards().clear();
  world.Restart();
  const int64_t second = world.Submit(world.Request(kMatmul, 5));
  EXPECT_EQ(world.Job(second).reason(),
            "waiting: no znver4-2c board is registered");
  world.fleet().AddBoard(board);
  world.fleet().SendFleet();
  ASSERT_TRUE(world.RunToEnd(second));
  world.CheckInvariants(second);
}

TEST(JobWaits, TasksOfSeveralClassesRunOnTheirOwnBoards) {
  ServerWorld world;
  world.fleet().AddBoard({.id = "arm",
                          .device_class = "neoverse-n1-4c",
                          .target = kOtherTargetText});
  world.fleet().SendFleet();
  v1::SubmitJobRequest request = world.Request(kMatmul, 15);
  request.mutable_tasks(0)->add_device_classes("neoverse-n1-4c");
  const int64_t id = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_EQ(world.Job(id).state(), v1::JOB_STATE_DONE);
  for (const StoredRecord& record : world.Records(kMatmul)) {
    const v1::TrialResult& result = record.result;
    const bool arm = result.device_id() == "arm";
    EXPECT_EQ(result.spec().target(), arm ? kOtherTargetText : kTargetText);
    EXPECT_EQ(result.device_class(), arm ? "neoverse-n1-4c" : kClass);
  }
  world.CheckInvariants(id);
}

}  // namespace
}  // namespace regatta

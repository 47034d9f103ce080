// Faults: whatever is killed, lost, repeated or full, every trial is recorded
// once and the job ends as it should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::kClass;
using testing::kTargetText;
using testing::Measurement;
using testing::ScaledSeeds;
using testing::ServerWorld;
using testing::SimulatedFleet;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";
constexpr char kRowSum[] = "C[i] = sum(k) A[i,k] where i=64, k=64";

// A job of three phases that is short: at least a dozen writes of each kind.
v1::SubmitJobRequest ShortRequest(ServerWorld& world) {
  v1::SubmitJobRequest request = world.Request(kMatmul, 10);
  *request.add_tasks() = request.tasks(0);
  request.mutable_tasks(1)->set_workload(kRowSum);
  request.set_request_id("once");
  return request;
}

// Submits until the server has answered, as a client that resends would.
int64_t SubmitThroughCrashes(ServerWorld& world,
                             const v1::SubmitJobRequest& request) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      world.jobs().Step();
      const auto job = world.jobs().Submit(request);
      EXPECT_TRUE(job.ok()) << job.status();
      if (job.ok()) return job->job_id();
    } catch (const testing::Crash&) {
      world.Restart();
    }
  }
  return -1;
}

int64_t WritesOfShortJob() {
  ServerWorld world;
  const int64_t before = world.log().writes();
  EXPECT_TRUE(world.RunToEnd(world.Submit(ShortRequest(world))));
  return world.log().writes() - before;
}

TEST(JobRestart, AKillAtAnyWriteLosesAndRepeatsNothing) {
  const int64_t writes = WritesOfShortJob();
  ASSERT_GT(writes, 40);
  // Every write at scale 1 would be minutes under a sanitizer: every third,
  // and all of them from scale 3 on.
  const int64_t step = ScaledSeeds(1) >= 3 ? 1 : 3;
  for (const bool after : {false, true}) {
    for (int64_t n = after ? 2 : 1; n <= writes; n += step) {
      SCOPED_TRACE(absl::StrCat(after ? "after write " : "before write ", n));
      ServerWorld world;
      world.log().CrashAt(n, after);
      const int64_t id = SubmitThroughCrashes(world, ShortRequest(world));
      ASSERT_EQ(id, 1);
      ASSERT_TRUE(world.RunToEnd(id));
      EXPECT_TRUE(world.log().crashed());
      const v1::Job job = world.Job(id);
      EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.reason();
      EXPECT_EQ(world.jobs().List()->size(), 1u);
      EXPECT_EQ(job.tasks(0).trials(), 10);
      EXPECT_EQ(job.tasks(1).trials(), 10);
      world.CheckInvariants(id);
    }
  }
}

TEST(JobRestart, SeedsOfFaultsAllEndWell) {
  const int seeds = ScaledSeeds(20);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    SimulatedFleet::Options options;
    options.seed = seed;
    options.lose = 0.15 * random.Unit();
    options.repeat = 0.3 * random.Unit();
    options.delay = 0.3 * random.Unit();
    ServerWorld* at = nullptr;
    options.measure = [&](const v1::TrialSpec& spec) {
      Measurement measured{.time_ns = at->landscapes().TimeNs(spec)};
      if (spec.kind() != v1::TRIAL_KIND_DEFAULT && spec.ordinal() % 7 == 3) {
        measured.outcome = spec.ordinal() % 2 == 0 ? v1::OUTCOME_CRASHED
                                                   : v1::OUTCOME_WRONG_RESULT;
      }
      return measured;
    };
    ServerWorld world(options);
    at = &world;
    world.fleet().AddBoard({.id = "board-1", .target = kTargetText});
    world.fleet().SendFleet();
    const int64_t id = SubmitThroughCrashes(world, ShortRequest(world));
    for (int i = 0; i < 3000; ++i) {
      const v1::JobState state = world.Job(id).state();
      if (state == v1::JOB_STATE_DONE || state == v1::JOB_STATE_PAUSED) break;
      const uint64_t what = random.Below(40);
      const uint64_t n = 1 + random.Below(6);
      try {
        if (what == 0) {
          world.Restart();
        } else if (what == 1) {
          world.log().CrashAt(n, random.Below(2) == 1);
        } else if (what == 2) {
          world.fleet().Disconnect(/*tell=*/true);
          world.jobs().Step();
          world.fleet().Connect(&world.jobs());
        } else if (what == 3) {
          world.fleet().Flush();
        } else {
          world.Turn();
        }
      } catch (const testing::Crash&) {
        world.Restart();
      }
    }
    world.log().CrashAt(0, false);
    ASSERT_TRUE(world.RunToEnd(id));
    // A default that is wrong in the confirmation, or finals that are lost
    // again and again, pause it, rightly.
    const v1::Job job = world.Job(id);
    if (job.state() == v1::JOB_STATE_PAUSED) {
      EXPECT_THAT(job.reason(),
                  ::testing::AnyOf(HasSubstr("in the confirmation"),
                                   HasSubstr("was lost 3 times")));
    } else {
      EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.reason();
    }
    world.CheckInvariants(id);
  }
}

TEST(JobRestart, AFinishedJobReadsTheSameAfterARestart) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 20));
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::Job before = world.Job(id);
  world.Restart();
  world.jobs().Step();
  EXPECT_EQ(world.Job(id).DebugString(), before.DebugString());
}

TEST(JobRestart, WorkThatBoardsHoldIsTakenUpUnderTheSameIds) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  for (int i = 0; i < 8; ++i) world.Turn();
  const auto held = world.fleet().held();
  ASSERT_GT(held.size(), 1u);
  const size_t submitted = world.fleet().submitted().size();
  world.Restart();
  world.jobs().Step();
  EXPECT_EQ(world.fleet().submitted().size(), submitted) << "nothing new";
  EXPECT_TRUE(world.fleet().cancels().empty());
  EXPECT_EQ(world.fleet().held().size(), held.size());
  ASSERT_TRUE(world.RunToEnd(id));
  world.CheckInvariants(id);
}

TEST(JobRestart, WorkOfAJobThatTheLogDoesNotWantIsCancelled) {
  ServerWorld world;
  v1::Work stray;
  stray.set_work_id("41/0/5");
  stray.set_job_id(41);
  stray.set_device_class(kClass);
  world.fleet().Submit({stray});
  world.Restart();
  world.jobs().Step();
  ASSERT_EQ(world.fleet().cancels().size(), 1u);
  EXPECT_EQ(world.fleet().cancels()[0].job_id(), 41);
  EXPECT_EQ(world.fleet().cancels()[0].work_ids(0), "41/0/5");
}

TEST(JobRestart, TheSearchTimeSpentBeforeARestartCounts) {
  ServerWorld world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 0);
  request.mutable_tasks(0)->set_trials(0);
  request.mutable_tasks(0)->set_minutes(1);
  const int64_t id = world.Submit(request);
  for (int i = 0; i < 301; ++i) world.Turn();  // 30 s of 48
  world.Kill();
  world.clock().Advance(absl::Hours(3));  // being down costs nothing
  world.Start();
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_NEAR(world.Job(id).tasks(0).trials(), 480, 10);
  world.CheckInvariants(id);
}

TEST(JobRestart, AnUpgradeInTheMiddleStartsOverWithTheNewCompiler) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  for (int i = 0; i < 12; ++i) world.Turn();
  const int64_t done = world.Job(id).tasks(0).trials();
  ASSERT_GT(done, 5);
  world.Kill();
  world.compiler = "fedcba9876543210/LLVM test";
  world.fleet().boards()[0].compiler = world.compiler;
  world.Start();
  world.jobs().Step();
  EXPECT_GT(world.fleet().cancels().size(), 0u);  // made by the old compiler
  ASSERT_TRUE(world.RunToEnd(id));
  const v1::TaskStatus task = world.Job(id).tasks(0);
  EXPECT_EQ(task.state(), v1::JOB_STATE_DONE) << task.reason();
  EXPECT_EQ(task.trials(), 30);
  int defaults = 0;
  for (const StoredRecord& record : world.Records(kMatmul)) {
    const v1::TrialSpec& spec = record.result.spec();
    if (spec.kind() == v1::TRIAL_KIND_DEFAULT) ++defaults;
    if (spec.kind() == v1::TRIAL_KIND_CONFIRM) {
      EXPECT_EQ(spec.compiler_version(), world.compiler);
    }
  }
  EXPECT_EQ(defaults, 2);
}

TEST(JobRestart, AFullDiskHoldsResultsBackUntilThereIsSpace) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  for (int i = 0; i < 5; ++i) world.Turn();
  const size_t acked = world.fleet().acks().size();
  world.log().FailWith(absl::ResourceExhaustedError("the disk is full"));
  for (int i = 0; i < 4; ++i) world.Turn();
  EXPECT_EQ(world.fleet().acks().size(), acked) << "nothing acked unstored";
  EXPECT_THAT(world.Job(id).tasks(0).reason(), HasSubstr("the disk is full"));
  EXPECT_EQ(world.jobs().Submit(world.Request(kRowSum, 5)).status().code(),
            absl::StatusCode::kResourceExhausted);
  world.log().FailWith(absl::OkStatus());
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_EQ(world.Job(id).state(), v1::JOB_STATE_DONE);
  world.CheckInvariants(id);
}

TEST(JobRestart, WhatAFullDiskLeftNoRoomForIsHadAgain) {
  ServerWorld world;
  world.max_unstored = 2;
  world.Restart();
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  for (int i = 0; i < 5; ++i) world.Turn();
  const size_t before = world.fleet().acks().size();
  world.log().FailWith(absl::ResourceExhaustedError("the disk is full"));
  // Boards finish what was handed out; the server keeps two of it.
  while (!world.fleet().held().empty()) world.Turn();
  const size_t out = world.fleet().spool().size();
  ASSERT_GT(out, world.max_unstored);
  EXPECT_EQ(world.fleet().acks().size(), before);
  EXPECT_EQ(world.fleet().reattached(), 0);
  world.log().FailWith(absl::OkStatus());
  world.jobs().Step();
  EXPECT_EQ(world.fleet().acks().size(), before + world.max_unstored);
  EXPECT_EQ(world.fleet().reattached(), 1);
  world.jobs().Step();
  EXPECT_EQ(world.fleet().acks().size(), before + out);
  ASSERT_TRUE(world.RunToEnd(id));
  EXPECT_EQ(world.fleet().reattached(), 1) << "for nothing more";
  world.CheckInvariants(id);
}

TEST(JobRestart, ACancellationThatAFullDiskHeldUpReachesTheTracker) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kMatmul, 30));
  for (int i = 0; i < 5; ++i) world.Turn();
  ASSERT_FALSE(world.fleet().held().empty());
  world.log().FailWith(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_EQ(world.jobs().Cancel(id).status().code(),
            absl::StatusCode::kUnavailable);
  world.jobs().Step();
  EXPECT_TRUE(world.fleet().cancels().empty()) << "not before it is stored";
  world.log().FailWith(absl::OkStatus());
  world.jobs().Step();
  ASSERT_EQ(world.fleet().cancels().size(), 1u);
  EXPECT_EQ(world.fleet().cancels()[0].job_id(), id);
  EXPECT_TRUE(world.fleet().cancels()[0].work_ids().empty()) << "all of it";
  EXPECT_TRUE(world.fleet().held().empty());
  world.jobs().Step();
  EXPECT_EQ(world.fleet().cancels().size(), 1u) << "once";
  EXPECT_EQ(world.Job(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST(JobRestart, AResentRequestIsTheSameJob) {
  ServerWorld world;
  v1::SubmitJobRequest request = world.Request(kMatmul, 10);
  request.set_request_id("abc");
  const int64_t id = world.Submit(request);
  EXPECT_EQ(world.Submit(request), id);
  world.Restart();
  EXPECT_EQ(world.Submit(request), id);
  EXPECT_EQ(world.jobs().List()->size(), 1u);
}

}  // namespace
}  // namespace regatta

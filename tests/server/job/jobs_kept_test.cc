// What a server keeps of jobs that have ended, and what only the log holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/job/job_manager.h"
#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::ServerWorld;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";
constexpr char kSmall[] = "matmul(m=64,n=64,k=64)";

TEST(JobsKept, EndedOnesBeyondTheNewestAreReadFromTheLog) {
  ServerWorld world;
  v1::SubmitJobRequest request = world.Request(kSmall, 1);
  request.set_request_id("first");
  const int64_t first = world.Submit(request);
  const int jobs = static_cast<int>(JobManager::kKeptEnded) + 5;
  ASSERT_TRUE(world.RunToEnd(first));
  const v1::Job before = world.Job(first);
  for (int i = 1; i < jobs; ++i) {
    const int64_t id = world.Submit(world.Request(kSmall, 1));
    ASSERT_TRUE(world.jobs().Cancel(id).ok());
    world.Turn();
  }
  for (int restarted = 0; restarted < 2; ++restarted) {
    const auto listed = world.jobs().List();
    ASSERT_TRUE(listed.ok()) << listed.status();
    ASSERT_EQ(listed->size(), static_cast<size_t>(jobs));
    EXPECT_EQ(listed->front().job_id(), jobs);
    EXPECT_EQ(listed->back().job_id(), first);
    EXPECT_EQ(listed->back().SerializeAsString(), before.SerializeAsString());
    EXPECT_EQ(world.Job(first).SerializeAsString(), before.SerializeAsString());
    int64_t version = 0;
    const auto watched =
        world.jobs().WaitForChange(first, absl::Seconds(1), &version);
    ASSERT_TRUE(watched.ok()) << watched.status();
    EXPECT_EQ(watched->state(), v1::JOB_STATE_DONE);
    // The same request is still the same job.
    EXPECT_EQ(world.Submit(request), first);
    EXPECT_EQ(world.jobs().Cancel(first).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(world.jobs().Get(jobs + 1).status().code(),
              absl::StatusCode::kNotFound);
    world.Restart();
  }
}

// Ends more jobs than are kept in memory.
void EndManyJobs(ServerWorld& world) {
  for (size_t i = 0; i <= JobManager::kKeptEnded; ++i) {
    const int64_t id = world.Submit(world.Request(kSmall, 1));
    ASSERT_TRUE(world.jobs().Cancel(id).ok());
  }
  world.jobs().Step();
}

TEST(JobsKept, AWatcherSeesTheEndOfOneThatIsForgottenMeanwhile) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kSmall, 5));
  int64_t version = 0;
  ASSERT_TRUE(world.jobs().WaitForChange(id, absl::Seconds(9), &version).ok());
  const int64_t seen = version;
  ASSERT_TRUE(world.jobs().Cancel(id).ok());
  EndManyJobs(world);
  const auto job = world.jobs().WaitForChange(id, absl::Seconds(9), &version);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_NE(version, seen);
  // There is no more to come.
  const int64_t last = version;
  ASSERT_TRUE(
      world.jobs().WaitForChange(id, absl::Milliseconds(1), &version).ok());
  EXPECT_EQ(version, last);
}

TEST(JobsKept, ALateResultWaitsWhileItsJobCannotBeRead) {
  ServerWorld world;
  const int64_t id = world.Submit(world.Request(kSmall, 30));
  v1::TrialResult late =
      world.fleet().Measure(world.fleet().held().begin()->second.trials(0),
                            false, world.fleet().boards()[0], 1);
  // The fleet answers what it holds as cancelled; this one it had handed out.
  late.mutable_spec()->set_ordinal(20);
  late.mutable_spec()->set_trial_id(absl::StrCat(id, "/0/20"));
  ASSERT_TRUE(world.jobs().Cancel(id).ok());
  EndManyJobs(world);
  const int64_t running = world.Submit(world.Request(kMatmul, 30));
  const auto& acks = world.fleet().acks();
  const size_t before = acks.size();
  const size_t records = world.Records(kSmall).size();

  world.log().FailReadsOfJobsWith(absl::UnavailableError("disk I/O error"));
  world.fleet().Deliver(late);
  world.Turn();
  ASSERT_EQ(acks.size(), before + 1);  // of the job that runs
  EXPECT_EQ(acks.back().status(), v1::ACK_STATUS_STORED);
  EXPECT_NE(acks.back().trial_id(), late.spec().trial_id());
  EXPECT_THAT(world.Job(running).reason(), HasSubstr("disk I/O error"));

  world.log().FailReadsOfJobsWith(absl::OkStatus());
  world.jobs().Step();
  ASSERT_EQ(acks.size(), before + 2);
  EXPECT_EQ(acks.back().status(), v1::ACK_STATUS_STORED)
      << acks.back().reason();
  EXPECT_EQ(acks.back().trial_id(), late.spec().trial_id());
  EXPECT_EQ(world.Job(running).reason(), "");
  EXPECT_EQ(world.Records(kSmall).size(), records + 1);

  // Once more: a duplicate. Its job is in memory no longer than the step.
  world.fleet().Deliver(late);
  world.jobs().Step();
  EXPECT_EQ(acks.back().status(), v1::ACK_STATUS_DUPLICATE);
  world.log().FailReadsOfJobsWith(absl::UnavailableError("disk I/O error"));
  EXPECT_EQ(world.jobs().Get(id).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(JobsKept, ADamagedOneIsListedAsFailedAndTheOthersGoOn) {
  ServerWorld world;
  const int64_t damaged = world.Submit(world.Request(kMatmul, 20));
  const int64_t good = world.Submit(world.Request(kSmall, 5));
  ASSERT_TRUE(
      world.plain_log().SaveJob(world.Job(damaged), "no text of ours").ok());
  world.Restart();
  const v1::Job job = world.Job(damaged);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(job.reason(), HasSubstr("checkpoint cannot be read"));
  ASSERT_TRUE(world.RunToEnd(good));
  EXPECT_EQ(world.Job(good).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(world.jobs().Resume(damaged).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace regatta

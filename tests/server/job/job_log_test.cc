// What jobs take from the tuning log, and what they may write to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::kClass;
using testing::kOtherTargetText;
using testing::kTargetText;
using testing::Measurement;
using testing::ServerWorld;
using testing::SimulatedFleet;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";
constexpr char kOtherShape[] = "matmul(m=512,n=256,k=512)";

std::set<std::string> Candidates(ServerWorld& world, const char* workload,
                                 int64_t job_id) {
  std::set<std::string> texts;
  for (const StoredRecord& record : world.Records(workload)) {
    const v1::TrialSpec& spec = record.result.spec();
    if (spec.job_id() == job_id && spec.kind() == v1::TRIAL_KIND_CANDIDATE) {
      texts.insert(spec.schedule().text());
    }
  }
  return texts;
}

TEST(JobLog, ASecondJobRepeatsNothingAndIsNeverWorse) {
  ServerWorld world;
  const int64_t first = world.Submit(world.Request(kMatmul, 40));
  ASSERT_TRUE(world.RunToEnd(first));
  v1::SubmitJobRequest request = world.Request(kMatmul, 40);
  request.set_seed(5);
  const int64_t second = world.Submit(request);
  EXPECT_EQ(world.Job(second).tasks(0).reused(), 40);
  ASSERT_TRUE(world.RunToEnd(second));
  const auto before = Candidates(world, kMatmul, first);
  for (const std::string& text : Candidates(world, kMatmul, second)) {
    EXPECT_EQ(before.count(text), 0u) << text;
  }
  const v1::TaskStatus task = world.Job(second).tasks(0);
  EXPECT_EQ(task.trials(), 40);
  EXPECT_EQ(task.reused(), 40);
  EXPECT_LE(task.best_ns(), world.Job(first).tasks(0).best_ns() * 1.005);
  world.CheckInvariants(second);
}

TEST(JobLog, AFreshJobKnowsNothingButStillMeetsTheIncumbent) {
  ServerWorld world;
  const int64_t first = world.Submit(world.Request(kMatmul, 100));
  ASSERT_TRUE(world.RunToEnd(first));
  v1::SubmitJobRequest request = world.Request(kMatmul, 5);
  request.set_fresh(true);
  request.set_strategy("random");
  const int64_t second = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(second));
  const v1::TaskStatus task = world.Job(second).tasks(0);
  EXPECT_EQ(task.reused(), 0);
  // Five random schedules do not beat a hundred trials: what stood before
  // stands, and says so.
  EXPECT_EQ(task.schedule(), world.Job(first).tasks(0).schedule());
  EXPECT_THAT(task.reason(), HasSubstr("best known before"));
  EXPECT_GT(task.speedup_low(), 1);
  world.CheckInvariants(second);
}

TEST(JobLog, RecordsOfAnotherCompilerAreSuggestionsNotEvidence) {
  ServerWorld world;
  const int64_t first = world.Submit(world.Request(kMatmul, 40));
  ASSERT_TRUE(world.RunToEnd(first));
  const std::string best = world.Job(first).tasks(0).schedule();
  world.compiler = "fedcba9876543210/LLVM test";
  world.fleet().boards()[0].compiler = world.compiler;
  world.fleet().SendFleet();
  world.Restart();
  const int64_t second = world.Submit(world.Request(kMatmul, 10));
  EXPECT_EQ(world.Job(second).tasks(0).reused(), 0);
  ASSERT_TRUE(world.RunToEnd(second));
  EXPECT_EQ(Candidates(world, kMatmul, second).count(best), 1u);
  world.CheckInvariants(second);
}

TEST(JobLog, TheBestOfAnotherShapeIsAmongTheFirstTried) {
  ServerWorld world;
  const int64_t first = world.Submit(world.Request(kMatmul, 60));
  ASSERT_TRUE(world.RunToEnd(first));
  const auto space = world.landscapes().SpaceFor(kOtherShape, kTargetText, 1);
  const auto adapted = space->Adapt(world.Job(first).tasks(0).schedule());
  ASSERT_TRUE(adapted.has_value());
  const int64_t second = world.Submit(world.Request(kOtherShape, 3));
  ASSERT_TRUE(world.RunToEnd(second));
  EXPECT_EQ(
      Candidates(world, kOtherShape, second).count(space->Print(*adapted)), 1u);
}

TEST(JobLog, AScheduleThatWasWrongOnceIsNeverUsedAgain) {
  ServerWorld* at = nullptr;
  bool wrong = true;
  SimulatedFleet::Options options;
  options.measure = [&](const v1::TrialSpec& spec) {
    Measurement measured{.time_ns = at->landscapes().TimeNs(spec)};
    // Right in screening, wrong in the first job's confirmation.
    if (wrong && spec.kind() == v1::TRIAL_KIND_CONFIRM && spec.ordinal() > 0 &&
        measured.time_ns < 1'400'000) {
      measured.outcome = v1::OUTCOME_WRONG_RESULT;
    }
    return measured;
  };
  ServerWorld world(options);
  at = &world;
  const int64_t first = world.Submit(world.Request(kMatmul, 60));
  ASSERT_TRUE(world.RunToEnd(first));
  std::set<std::string> bad;
  for (const StoredRecord& record : world.Records(kMatmul)) {
    if (record.result.outcome() == v1::OUTCOME_WRONG_RESULT) {
      bad.insert(record.result.spec().schedule().text());
    }
  }
  ASSERT_FALSE(bad.empty());
  wrong = false;
  const int64_t second = world.Submit(world.Request(kMatmul, 10));
  ASSERT_TRUE(world.RunToEnd(second));
  EXPECT_EQ(bad.count(world.Job(second).tasks(0).schedule()), 0u);
  world.CheckInvariants(second);
}

TEST(JobLog, AFreshJobDoesNotPublishWhatAnotherFoundWrong) {
  ServerWorld* at = nullptr;
  bool wrong = true;
  SimulatedFleet::Options options;
  options.noise = 0;
  options.measure = [&](const v1::TrialSpec& spec) {
    Measurement measured{.time_ns = at->landscapes().TimeNs(spec)};
    if (wrong && spec.kind() == v1::TRIAL_KIND_CONFIRM &&
        measured.time_ns < 1'400'000) {
      measured.outcome = v1::OUTCOME_WRONG_RESULT;
    }
    return measured;
  };
  ServerWorld world(options);
  at = &world;
  const int64_t first = world.Submit(world.Request(kMatmul, 60));
  ASSERT_TRUE(world.RunToEnd(first));
  ASSERT_GT(world.Job(first).tasks(0).outcomes().count("wrong_result"), 0u);
  wrong = false;
  v1::SubmitJobRequest request = world.Request(kMatmul, 60);
  request.set_fresh(true);  // the same seed: it finds the same winners
  const int64_t second = world.Submit(request);
  ASSERT_TRUE(world.RunToEnd(second));
  EXPECT_EQ(world.Job(second).state(), v1::JOB_STATE_DONE)
      << world.Job(second).reason();
  std::set<std::string> bad;
  for (const StoredRecord& record : world.Records(kMatmul)) {
    if (record.result.outcome() == v1::OUTCOME_WRONG_RESULT) {
      bad.insert(record.result.spec().schedule().text());
    }
  }
  EXPECT_EQ(bad.count(world.Job(second).tasks(0).schedule()), 0u);
  world.CheckInvariants(second);
}

// Gives the server one result and returns the verdict on it.
v1::TrialAck Verdict(ServerWorld& world, const v1::TrialResult& result) {
  const size_t before = world.fleet().acks().size();
  world.fleet().Deliver(result);
  world.jobs().Step();
  EXPECT_EQ(world.fleet().acks().size(), before + 1);
  return world.fleet().acks().back();
}

class ForgedResult : public ::testing::Test {
 protected:
  ForgedResult() {
    id_ = world_.Submit(world_.Request(kMatmul, 30));
    for (int i = 0; i < 5; ++i) world_.Turn();
    const v1::Work& work = world_.fleet().held().begin()->second;
    good_ = world_.fleet().Measure(work.trials(0), false,
                                   world_.fleet().boards()[0], 1);
  }

  void ExpectRefused(const v1::TrialResult& result, const char* words) {
    const int64_t count = *world_.plain_log().CountRecords();
    const v1::TrialAck ack = Verdict(world_, result);
    EXPECT_EQ(ack.status(), v1::ACK_STATUS_REJECTED);
    EXPECT_THAT(ack.reason(), HasSubstr(words));
    EXPECT_EQ(*world_.plain_log().CountRecords(), count);
  }

  ServerWorld world_;
  int64_t id_ = 0;
  v1::TrialResult good_;
};

TEST_F(ForgedResult, TheHonestOneIsStoredOnce) {
  EXPECT_EQ(Verdict(world_, good_).status(), v1::ACK_STATUS_STORED);
  const int64_t trials = world_.Job(id_).tasks(0).trials();
  EXPECT_EQ(Verdict(world_, good_).status(), v1::ACK_STATUS_DUPLICATE);
  EXPECT_EQ(world_.Job(id_).tasks(0).trials(), trials);
}

TEST_F(ForgedResult, WithoutAnIdOrForAJobOfAnotherLog) {
  v1::TrialResult result = good_;
  result.mutable_spec()->clear_trial_id();
  ExpectRefused(result, "trial_id");
  result = good_;
  result.mutable_spec()->set_job_id(70);
  result.mutable_spec()->set_trial_id("70/0/1");
  ExpectRefused(result, "no job 70");
  result = good_;
  result.mutable_spec()->set_task(3);
  ExpectRefused(result, "task 3");
}

TEST_F(ForgedResult, WithAnotherScheduleThanWasAskedFor) {
  v1::TrialResult result = good_;
  const auto space = world_.landscapes().SpaceFor(kMatmul, kTargetText, 1);
  result.mutable_spec()->mutable_schedule()->set_text(
      space->Print(space->Default()));
  ExpectRefused(result, "specification");
}

TEST_F(ForgedResult, UnderAnotherKey) {
  // A late answer, so that nothing is left to compare it with word by word.
  ASSERT_TRUE(world_.jobs().Cancel(id_).ok());
  world_.jobs().Step();
  v1::TrialResult late = good_;
  late.mutable_spec()->set_ordinal(1);
  late.mutable_spec()->set_trial_id(std::to_string(id_) + "/0/1");
  v1::TrialResult result = late;
  result.mutable_spec()->set_workload_key("0123");
  ExpectRefused(result, "workload");
  result = late;
  result.mutable_spec()->set_device_class("other-8c");
  ExpectRefused(result, "device class");
  result = late;
  result.set_device_class("other-8c");
  ExpectRefused(result, "device class");
  result = late;
  result.mutable_spec()->mutable_policy()->set_threads(2);
  ExpectRefused(result, "policy");
  result = late;
  result.mutable_spec()->mutable_schedule()->set_text("nonsense{}");
  ExpectRefused(result, "schedule");
  result = late;
  result.mutable_spec()->set_kind(v1::TRIAL_KIND_UNSPECIFIED);
  ExpectRefused(result, "kind");
  result = late;
  result.mutable_spec()->set_ordinal(2);
  ExpectRefused(result, "trial_id");
  result = late;
  result.mutable_spec()->set_ordinal(100'000);
  result.mutable_spec()->set_trial_id(std::to_string(id_) + "/0/100000");
  ExpectRefused(result, "ordinal");
}

TEST_F(ForgedResult, AsAnImportedOne) {
  v1::TrialResult result = good_;
  result.set_provenance("import:lab-b");
  ExpectRefused(result, "provenance is 'import:lab-b'");
}

TEST_F(ForgedResult, WithATimeThatItsBlocksDoNotGive) {
  v1::TrialResult result = good_;
  result.set_time_ns(2 * good_.time_ns() + 10);
  ExpectRefused(result, "time_ns is");
  EXPECT_EQ(Verdict(world_, good_).status(), v1::ACK_STATUS_STORED);
}

TEST_F(ForgedResult, MalformedOnesDoNotHoldUpTheHonestOnes) {
  v1::TrialResult bad = good_;
  bad.mutable_blocks(0)->set_calls(0);
  bad.mutable_blocks(0)->set_throttled(false);
  const auto& held = world_.fleet().held();
  const v1::TrialResult other =
      world_.fleet().Measure(std::next(held.begin())->second.trials(0), false,
                             world_.fleet().boards()[0], 1);
  world_.fleet().Deliver(bad);
  world_.fleet().Deliver(other);
  world_.jobs().Step();
  const auto& acks = world_.fleet().acks();
  ASSERT_GE(acks.size(), 2u);
  EXPECT_EQ(acks[acks.size() - 2].status(), v1::ACK_STATUS_REJECTED);
  EXPECT_THAT(acks[acks.size() - 2].reason(), HasSubstr("block 0"));
  EXPECT_EQ(acks.back().status(), v1::ACK_STATUS_STORED);
}

}  // namespace
}  // namespace regatta

// The JSON contract of docs/cli.md: which keys there are, in which units, and
// what is null.
#include "client/cli/documents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "client/cli/job_report.h"

namespace regatta::cli {
namespace {

std::set<std::string> Keys(const Json& document) {
  std::set<std::string> keys;
  for (const auto& [key, value] : document.items()) keys.insert(key);
  return keys;
}

void ExpectKeys(const Json& document, const std::set<std::string>& promised) {
  const std::set<std::string> keys = Keys(document);
  for (const std::string& key : promised) {
    EXPECT_EQ(keys.count(key), 1u) << key << " is missing";
  }
}

void ExpectNull(const Json& document, const std::set<std::string>& keys) {
  for (const std::string& key : keys) {
    ASSERT_TRUE(document.contains(key)) << key;
    EXPECT_TRUE(document[key].is_null()) << key << " is " << document[key];
  }
}

v1::Job SampleJob() {
  v1::Job job;
  job.set_job_id(7);
  job.set_state(v1::JOB_STATE_DONE);
  job.set_strategy("evolutionary");
  job.set_seed(18446744073709551615u);
  v1::TaskStatus* task = job.add_tasks();
  task->set_workload("matmul(m=4,n=4,k=4)");
  task->set_workload_key("00ff");
  task->set_device_class("znver4-2c");
  task->mutable_policy()->set_threads(2);
  task->mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  task->set_state(v1::JOB_STATE_DONE);
  task->set_budget_trials(10);
  task->set_trials(10);
  (*task->mutable_outcomes())["ok"] = 8;
  (*task->mutable_outcomes())["timed_out"] = 2;
  task->set_reused(3);
  task->set_default_ns(2'000'000);
  task->set_best_ns(1'000'000);
  task->set_confirmed(true);
  task->set_speedup(2);
  task->set_speedup_low(1.9);
  task->set_speedup_high(2.1);
  task->set_schedule("gemm{mr=4}");
  task->set_flops(3e6);
  task->set_bytes(5e4);
  task->set_peak_flops_per_s(64e9);
  task->set_remaining_ms(-1);
  return job;
}

TEST(JobDocument, HasWhatIsPromised) {
  const Json job = JobDocument(SampleJob());
  ExpectKeys(job, {"job", "state", "tasks"});
  EXPECT_EQ(job["job"], 7);
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(job["seed"], 18446744073709551615u);
  ASSERT_EQ(job["tasks"].size(), 1u);
  const Json& task = job["tasks"][0];
  ExpectKeys(task, {"workload", "device_class", "threads", "cache", "trials",
                    "outcomes", "reused", "default_ns", "best_ns", "speedup",
                    "speedup_interval", "gflops", "gbps", "schedule"});
  EXPECT_EQ(task["threads"], 2);
  EXPECT_EQ(task["cache"], "cold");
  EXPECT_EQ(task["reused"], 3);
  EXPECT_TRUE(task["default_ns"].is_number_integer());
  EXPECT_EQ(task["best_ns"], 1'000'000);
  EXPECT_EQ(task["speedup_interval"], Json::parse("[1.9, 2.1]"));
  // 3e6 operations and 5e4 bytes in one millisecond.
  EXPECT_DOUBLE_EQ(task["gflops"].get<double>(), 3.0);
  EXPECT_DOUBLE_EQ(task["gbps"].get<double>(), 0.05);
  EXPECT_DOUBLE_EQ(task["peak_gflops"].get<double>(), 64.0);
}

TEST(JobDocument, CountsEveryOutcomeAlsoThoseThatNeverCameUp) {
  const Json outcomes = JobDocument(SampleJob())["tasks"][0]["outcomes"];
  EXPECT_EQ(Keys(outcomes),
            (std::set<std::string>{"ok", "compile_error", "wrong_result",
                                   "crashed", "timed_out", "out_of_memory",
                                   "sandbox_violation", "implausible",
                                   "refused", "duplicate_binary", "agent_lost",
                                   "device_fault", "throttled", "cancelled"}));
  EXPECT_EQ(outcomes["ok"], 8);
  EXPECT_EQ(outcomes["timed_out"], 2);
  EXPECT_EQ(outcomes["crashed"], 0);
}

TEST(JobDocument, WhatIsNotKnownIsNull) {
  v1::Job job;
  job.set_job_id(1);
  job.set_state(v1::JOB_STATE_QUEUED);
  job.add_tasks()->set_remaining_ms(-1);
  const Json document = JobDocument(job);
  ExpectNull(document, {"name", "reason", "ended_unix_ms"});
  ExpectNull(document["tasks"][0],
             {"default_ns", "best_ns", "speedup", "speedup_interval", "gflops",
              "gbps", "schedule", "peak_gflops", "peak_gbps", "remaining_ms",
              "trials_per_s", "budget_trials", "reason"});
  EXPECT_EQ(document["tasks"][0]["trials"], 0);
}

TEST(DeviceDocument, HasWhatIsPromised) {
  v1::DeviceStatus device;
  device.mutable_info()->set_device_id("a-1");
  device.mutable_info()->set_device_class("znver4-2c");
  device.mutable_info()->set_target("cpu,triple=x86_64-linux-gnu,mcpu=znver4");
  device.mutable_info()->set_health("ok");
  device.mutable_info()->set_noise_floor(0.012);
  device.mutable_info()->set_has_noise_floor(true);
  device.set_state("idle");
  const Json document = DeviceDocument(device);
  ExpectKeys(document, {"id", "device_class", "target", "state", "health",
                        "noise_floor"});
  EXPECT_EQ(document["id"], "a-1");
  EXPECT_DOUBLE_EQ(document["noise_floor"].get<double>(), 0.012);
  ExpectNull(document, {"l1_bytes", "peak_gflops", "running_workload"});
  device.mutable_info()->set_has_noise_floor(false);
  ExpectNull(DeviceDocument(device), {"noise_floor"});
}

TEST(DeviceDocument, SaysWhoBuildsForABoard) {
  v1::DeviceStatus device;
  EXPECT_EQ(DeviceDocument(device)["measure_only"], false);
  ExpectNull(DeviceDocument(device), {"builder"});
  device.set_measure_only(true);
  device.set_builder("b");
  EXPECT_EQ(DeviceDocument(device)["measure_only"], true);
  EXPECT_EQ(DeviceDocument(device)["builder"], "b");
}

TEST(BuilderDocument, HasWhatIsPromised) {
  v1::BuilderStatus builder;
  builder.set_agent_id("b");
  builder.set_public_key(std::string(31, '\x01') + "\xff");
  builder.set_slots(2);
  v1::KindReach& kind = *builder.mutable_reach()->add_kinds();
  kind.set_kind("cpu");
  kind.add_architectures("aarch64");
  const Json document = BuilderDocument(builder);
  ExpectKeys(document, {"agent", "key", "slots", "building", "answered"});
  EXPECT_EQ(document["key"].get<std::string>().substr(58), "0101ff");
  EXPECT_EQ(document["reach"][0]["architectures"], Json({"aarch64"}));
}

TEST(BestDocument, HasWhatIsPromised) {
  v1::BestAnswer answer;
  answer.set_grade("exact");
  answer.set_workload("matmul(m=4,n=4,k=4)");
  answer.set_device_class("znver4-2c");
  answer.mutable_policy()->set_threads(1);
  answer.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  answer.mutable_schedule()->set_text("gemm{mr=4}");
  answer.set_time_ns(100);
  answer.set_low_ns(99);
  answer.set_high_ns(102);
  answer.set_samples(12);
  answer.set_boards(1);
  answer.set_age_s(0);
  answer.set_reason("confirmed");
  const Json document = BestDocument(answer);
  ExpectKeys(document, {"grade", "workload", "device_class", "threads", "cache",
                        "schedule", "time_ns", "interval_ns", "samples",
                        "boards", "reason"});
  EXPECT_EQ(document["cache"], "warm");
  EXPECT_EQ(document["interval_ns"], Json::parse("[99, 102]"));
  EXPECT_TRUE(document["interval_ns"][0].is_number_integer());
  EXPECT_EQ(document["age_s"], 0) << "just now is not unknown";
  ExpectNull(document, {"differing_field", "default_ns"});
}

TEST(BestDocument, TheTimeOfANeighbourIsNull) {
  v1::BestAnswer answer;
  answer.set_grade("neighbour_shape");
  answer.set_age_s(-1);
  answer.set_differing_field("workload");
  const Json document = BestDocument(answer);
  ExpectNull(document, {"time_ns", "interval_ns", "age_s"});
  EXPECT_EQ(document["differing_field"], "workload");
}

TEST(RecordDocument, HasWhatIsPromised) {
  v1::Record record;
  v1::TrialResult* result = record.mutable_result();
  result->mutable_spec()->set_trial_id("1/0/3");
  result->mutable_spec()->set_kind(v1::TRIAL_KIND_CANDIDATE);
  result->mutable_spec()->mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  result->mutable_spec()->mutable_schedule()->set_text("gemm{mr=4}");
  result->set_outcome(v1::OUTCOME_CRASHED);
  result->set_detail("signal 11 at 0x10");
  result->set_device_id("a-1");
  const Json document = RecordDocument(record);
  ExpectKeys(document,
             {"trial", "schedule", "outcome", "detail", "time_ns", "device"});
  EXPECT_EQ(document["trial"], "1/0/3");
  EXPECT_EQ(document["outcome"], "crashed");
  EXPECT_EQ(document["detail"], "signal 11 at 0x10");
  EXPECT_EQ(document["kind"], "candidate");
  ExpectNull(document, {"time_ns", "binary_hash", "build_ns"});
  v1::Block* block = result->add_blocks();
  block->set_calls(4);
  block->set_elapsed_ns(1000);
  EXPECT_EQ(
      RecordDocument(record)["blocks"],
      Json::parse(R"([{"calls":4,"elapsed_ns":1000,"throttled":false}])"));
}

TEST(PositiveOrNull, NothingButAPositiveNumberIsOne) {
  EXPECT_EQ(PositiveOrNull(int64_t{5}), 5);
  EXPECT_TRUE(PositiveOrNull(int64_t{0}).is_null());
  EXPECT_TRUE(PositiveOrNull(int64_t{-1}).is_null());
  EXPECT_TRUE(PositiveOrNull(std::nan("")).is_null());
  EXPECT_TRUE(PositiveOrNull(INFINITY).is_null());
}

TEST(PrintJson, TextThatIsNoUtf8IsReplaced) {
  ::testing::internal::CaptureStdout();
  PrintJson({{"detail", "bad \xff byte"}});
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(Json::parse(text)["detail"], "bad \xEF\xBF\xBD byte");
}

TEST(JobExitCode, FollowsTheStateOfTheJob) {
  v1::Job job;
  for (const auto& [state, code] : std::vector<std::pair<v1::JobState, int>>{
           {v1::JOB_STATE_QUEUED, 0},
           {v1::JOB_STATE_RUNNING, 0},
           {v1::JOB_STATE_DONE, 0},
           {v1::JOB_STATE_EXHAUSTED, 0},
           {v1::JOB_STATE_PAUSED, 1},
           {v1::JOB_STATE_FAILED, 1},
           {v1::JOB_STATE_CANCELLED, 1}}) {
    job.set_state(state);
    EXPECT_EQ(JobExitCode(job), code) << v1::JobState_Name(state);
  }
}

TEST(JobReport, ANameOrAReasonCannotSteerTheTerminal) {
  v1::Job job;
  job.set_name("\x1b]0;pwn\x07\r\nJob 99");
  job.set_reason("\x1b[2J");
  const std::string report = JobReport(job);
  EXPECT_NE(report.find("\\x1b]0;pwn\\x07\\r\\nJob 99"), std::string::npos)
      << report;
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
  EXPECT_EQ(report.find('\r'), std::string::npos);
}

TEST(JobReport, SaysWhereTheDefaultStands) {
  v1::Job job = SampleJob();
  v1::TaskStatus* const task = job.mutable_tasks(0);
  task->set_confirmed(true);
  task->set_best_ns(task->default_ns());
  EXPECT_NE(JobReport(job).find("the default: nothing beat it with confidence"),
            std::string::npos);
  task->set_best_ns(task->default_ns() / 2);
  EXPECT_NE(JobReport(job).find("confirmed against the default"),
            std::string::npos);
}

TEST(JobReport, SaysDefaultTunedSpeedUpAndSchedule) {
  const std::string report = JobReport(SampleJob());
  for (const char* part :
       {"Job 7: done",
        "matmul(m=4,n=4,k=4) on znver4-2c, 2 threads, cold cache", "2.000 ms",
        "1.000 ms",
        "3.000 GFLOP/s (5 % of the measured peak of one core times 2)",
        "2.00x (95 % interval 1.90x to 2.10x)", "gemm{mr=4}",
        "8 ok, 2 timed_out", "3 measured before, not repeated"}) {
    EXPECT_NE(report.find(part), std::string::npos)
        << part << " is missing in\n"
        << report;
  }
}

}  // namespace
}  // namespace regatta::cli

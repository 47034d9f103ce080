#include "tests/storage/records.h"

#include "absl/strings/str_cat.h"
#include "base/digest.h"

namespace regatta::testing {

WorkloadInfo Matmul(int64_t m, int64_t n, int64_t k) {
  return {.key = absl::StrCat("matmul-", m, "-", n, "-", k),
          .text = absl::StrCat("matmul(m=", m, ",n=", n, ",k=", k, ")"),
          .family = "matmul",
          .structure = "C[i,j] = sum(k) A[i,k] * B[k,j]",
          .extents = {m, n, k}};
}

v1::TrialResult OkResult(const std::string& trial_id,
                         const WorkloadInfo& workload,
                         const std::string& schedule, int64_t time_ns) {
  v1::TrialResult result;
  v1::TrialSpec& spec = *result.mutable_spec();
  spec.set_trial_id(trial_id);
  spec.set_job_id(1);
  spec.set_kind(v1::TRIAL_KIND_CANDIDATE);
  spec.set_workload(workload.text);
  spec.set_workload_key(workload.key);
  spec.set_device_class("zen4-2c");
  spec.set_target("cpu:x86_64-linux-gnu,znver4");
  spec.mutable_policy()->set_threads(1);
  spec.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  spec.mutable_schedule()->set_space("cpu");
  spec.mutable_schedule()->set_space_version(1);
  spec.mutable_schedule()->set_text(schedule);
  result.set_outcome(v1::OUTCOME_OK);
  result.set_time_ns(time_ns);
  result.set_binary_hash(Sha256Hex(schedule));
  result.set_device_id("board-1");
  result.set_device_class("zen4-2c");
  result.set_provenance("agent");
  for (int i = 0; i < 3; ++i) {
    v1::Block& block = *result.add_blocks();
    block.set_calls(10);
    block.set_elapsed_ns(time_ns * 10 + i - 1);
  }
  return result;
}

v1::TrialResult Failed(v1::TrialResult result, v1::Outcome outcome) {
  result.set_outcome(outcome);
  result.set_detail("planted");
  result.clear_blocks();
  result.clear_time_ns();
  return result;
}

void SetBlocks(v1::TrialResult& result, const std::vector<int64_t>& times) {
  result.clear_blocks();
  for (const int64_t time : times) {
    v1::Block& block = *result.add_blocks();
    block.set_calls(1);
    block.set_elapsed_ns(time);
  }
}

BestKey KeyFor(const WorkloadInfo& workload, const std::string& device_class) {
  return {.workload_key = workload.key,
          .device_class = device_class,
          .threads = 1,
          .cache = v1::CACHE_STATE_WARM};
}

Publication Verdict(const v1::TrialResult& result, int64_t time_ns) {
  return {.key = {.workload_key = result.spec().workload_key(),
                  .device_class = result.device_class(),
                  .threads = result.spec().policy().threads(),
                  .cache = result.spec().policy().cache()},
          .trial_id = result.spec().trial_id(),
          .time_ns = time_ns};
}

std::vector<StoredRecord> AllRecords(const TuningLog& log,
                                     const WorkloadInfo& workload) {
  std::vector<StoredRecord> records;
  EXPECT_OK(log.ForEachRecord({.workload_key = workload.key},
                              [&](const StoredRecord& record) {
                                records.push_back(record);
                                return true;
                              }));
  return records;
}

std::vector<std::string> TrialIds(const std::vector<StoredRecord>& records) {
  std::vector<std::string> ids;
  for (const StoredRecord& record : records) {
    ids.push_back(record.result.spec().trial_id());
  }
  return ids;
}

std::string Describe(const BestKnown& best) {
  return absl::StrCat(
      best.key.workload_key, " ", best.key.device_class, " ", best.key.threads,
      " ", static_cast<int>(best.key.cache), " ",
      best.record.result.ShortDebugString(), " ", best.record.recorded_unix_ms,
      " confirmed ", best.confirmed, " time ", best.time_ns, " [", best.low_ns,
      ",", best.high_ns, "] samples ", best.samples, " boards ", best.boards,
      " default ", best.default_ns, " speedup ", best.speedup, " [",
      best.speedup_low, ",", best.speedup_high, "] since ", best.since_unix_ms);
}

}  // namespace regatta::testing

#include "tests/storage/tuning_log_contract.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/storage/records.h"

namespace regatta::testing {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TuningLogContract);

TuningLogContract::TuningLogContract() : place_(GetParam().make_place()) {
  Reopen();
}

void TuningLogContract::Reopen() {
  log_.reset();
  auto log = OpenTuningLog(place_->Location());
  EXPECT_OK(log);
  log_ = *std::move(log);
}

TEST_P(TuningLogContract, HasANameThatStays) {
  const std::string id = log_->LogId();
  EXPECT_GE(id.size(), 16u);
  Reopen();
  EXPECT_EQ(log_->LogId(), id);
}

TEST_P(TuningLogContract, GivesAResultBackWholeAfterReopening) {
  const WorkloadInfo workload = Matmul(512, 512, 512);
  ASSERT_OK(log_->PutWorkload(workload));
  v1::TrialResult result = OkResult("1/0/0", workload, "tile=4", 1000);
  result.mutable_spec()->set_incumbent_ns(3000);
  result.mutable_spec()->set_input_seed(~uint64_t{0});
  result.mutable_environment()->set_kernel_release("6.1.0");
  v1::SensorReading& sensor = *result.mutable_environment()->add_sensors();
  sensor.set_name("cpu_frequency");
  sensor.set_unit("Hz");
  sensor.set_after(3.5e9);
  result.set_max_error(0.25);
  ASSERT_OK(log_->Append({result}, 1234));
  Reopen();
  const auto records = AllRecords(*log_, workload);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_TRUE(MessageDifferencer::Equals(records[0].result, result))
      << records[0].result.DebugString();
  EXPECT_EQ(records[0].recorded_unix_ms, 1234);
  EXPECT_EQ(records[0].family, "matmul");
  EXPECT_THAT(records[0].extents, ElementsAre(512, 512, 512));
}

TEST_P(TuningLogContract, StoresATrialOnce) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  const v1::TrialResult first = OkResult("1/0/0", workload, "a", 1000);
  const v1::TrialResult again = OkResult("1/0/0", workload, "a", 1);
  const auto once = log_->Append({first, again}, 1);
  ASSERT_OK(once);
  EXPECT_THAT(*once,
              ElementsAre(AppendStatus::kStored, AppendStatus::kDuplicate));
  const auto later = log_->Append({again}, 2);
  ASSERT_OK(later);
  EXPECT_THAT(*later, ElementsAre(AppendStatus::kDuplicate));
  EXPECT_EQ(*log_->CountRecords(), 1);
  EXPECT_EQ((*log_->Best(KeyFor(workload)))->time_ns, 1000);
}

TEST_P(TuningLogContract, RefusesAMalformedResultAndStoresNothingOfItsBatch) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  const v1::TrialResult good = OkResult("1/0/0", workload, "a", 1000);
  const auto refuse = [&](const std::function<void(v1::TrialResult&)>& spoil,
                          const std::string& text) {
    v1::TrialResult bad = OkResult("1/0/7", workload, "b", 1000);
    spoil(bad);
    EXPECT_STATUS(log_->Append({good, bad}, 1), kInvalidArgument, text);
    EXPECT_EQ(*log_->CountRecords(), 0);
  };
  refuse([](auto& r) { r.mutable_spec()->clear_trial_id(); }, "no trial_id");
  refuse([](auto& r) { r.mutable_spec()->set_workload_key("unheard-of"); },
         "unheard-of");
  refuse([](auto& r) { r.mutable_spec()->clear_workload_key(); },
         "trial 1/0/7 has no workload_key");
  refuse([](auto& r) { r.mutable_blocks(1)->set_calls(0); }, "kept block 1");
  refuse([](auto& r) { r.mutable_blocks(1)->set_elapsed_ns(-5); }, "-5 ns");
  refuse([](auto& r) { r.set_time_ns(-1); }, "-1 ns");
  refuse([](auto& r) { r.clear_outcome(); }, "outcome");
  refuse([](auto& r) { r.set_outcome(static_cast<v1::Outcome>(77)); }, "77");
  refuse([](auto& r) { r.mutable_spec()->clear_policy(); }, "0 threads");
  refuse([](auto& r) { r.mutable_spec()->mutable_policy()->clear_cache(); },
         "cache");
  refuse(
      [](auto& r) {
        r.clear_device_class();
        r.mutable_spec()->clear_device_class();
      },
      "device_class");
  EXPECT_THAT(*log_->DeviceClasses(true), ElementsAre());
  v1::TrialResult discarded = good;
  discarded.mutable_blocks(0)->set_calls(0);
  discarded.mutable_blocks(0)->set_throttled(true);
  EXPECT_OK(log_->Append({discarded}, 1));
}

TEST_P(TuningLogContract, FiltersRecordsAndKeepsTheirOrder) {
  const WorkloadInfo workload = Matmul(8, 8, 8), other = Matmul(9, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  ASSERT_OK(log_->PutWorkload(other));
  v1::TrialResult a = OkResult("1/0/0", workload, "a", 10);
  v1::TrialResult b = OkResult("1/0/1", workload, "b", 10);
  b.set_device_class("cortex-a72-4c");
  v1::TrialResult c = OkResult("2/0/0", workload, "c", 10);
  c.mutable_spec()->set_job_id(2);
  v1::TrialResult d = OkResult("2/0/1", workload, "d", 10);
  d.mutable_spec()->mutable_policy()->set_threads(2);
  v1::TrialResult e = OkResult("2/0/2", workload, "e", 10);
  e.mutable_spec()->mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  const v1::TrialResult f = OkResult("3/0/0", other, "f", 10);
  ASSERT_OK(log_->Append({a, b, f}, 1));
  ASSERT_OK(log_->Append({c, d, e}, 2));
  const auto ids = [&](RecordFilter filter) {
    filter.workload_key = workload.key;
    std::vector<StoredRecord> found;
    EXPECT_OK(log_->ForEachRecord(filter, [&](const StoredRecord& record) {
      found.push_back(record);
      return true;
    }));
    return TrialIds(found);
  };
  EXPECT_THAT(ids({}),
              ElementsAre("1/0/0", "1/0/1", "2/0/0", "2/0/1", "2/0/2"));
  EXPECT_THAT(ids({.device_class = "cortex-a72-4c"}), ElementsAre("1/0/1"));
  EXPECT_THAT(ids({.threads = 2}), ElementsAre("2/0/1"));
  EXPECT_THAT(ids({.cache = v1::CACHE_STATE_COLD}), ElementsAre("2/0/2"));
  EXPECT_THAT(ids({.job_id = 2}), ElementsAre("2/0/0"));
  EXPECT_STATUS(log_->ForEachRecord({}, [](auto&) { return true; }),
                kInvalidArgument, "workload_key");
  // Of another log: known of, but no board of ours ever had it.
  v1::TrialResult imported = OkResult("7:1/0/9", workload, "z", 1000);
  imported.mutable_spec()->set_device_class("m9-64c");
  imported.set_device_class("m9-64c");
  imported.set_provenance("import:lab-b");
  ASSERT_OK(log_->Append({imported}, 1));
  EXPECT_THAT(*log_->DeviceClasses(false),
              ElementsAre("cortex-a72-4c", "zen4-2c"));
  EXPECT_THAT(*log_->DeviceClasses(true),
              ElementsAre("cortex-a72-4c", "m9-64c", "zen4-2c"));
}

TEST_P(TuningLogContract, AVisitorMayStopAndMayCallTheLog) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  std::vector<v1::TrialResult> results;
  for (int i = 0; i < 600; ++i) {
    results.push_back(OkResult(absl::StrCat("1/0/", i), workload, "a", 10));
  }
  ASSERT_OK(log_->Append(results, 1));
  int seen = 0;
  ASSERT_OK(log_->ForEachRecord(
      {.workload_key = workload.key}, [&](const StoredRecord& record) {
        EXPECT_EQ(record.result.spec().trial_id(), absl::StrCat("1/0/", seen));
        EXPECT_OK(log_->Best(KeyFor(workload)));
        if (seen % 100 == 0) EXPECT_OK(log_->ReserveOrdinals(1, 0, 1));
        return ++seen < 300;
      }));
  EXPECT_EQ(seen, 300);
}

TEST_P(TuningLogContract, KeepsJobsAndTheirRequestIds) {
  v1::SubmitJobRequest request;
  request.set_name("first");
  request.set_request_id("abc");
  const auto first = log_->CreateJob(request, 5);
  ASSERT_OK(first);
  EXPECT_EQ(log_->CreateJob(request, 6).value(), *first);
  v1::SubmitJobRequest anonymous;
  const auto second = log_->CreateJob(anonymous, 7);
  const auto third = log_->CreateJob(anonymous, 8);
  EXPECT_LT(*first, second.value());
  EXPECT_LT(*second, third.value());

  auto fresh = log_->GetJob(*first);
  ASSERT_OK(fresh);
  EXPECT_EQ(fresh->job.job_id(), *first);
  EXPECT_EQ(fresh->job.state(), v1::JOB_STATE_UNSPECIFIED);
  EXPECT_EQ(fresh->request.name(), "first");
  v1::Job job;
  job.set_job_id(*first);
  job.set_state(v1::JOB_STATE_DONE);
  const std::string checkpoint("bytes\0 of any kind", 18);
  ASSERT_OK(log_->SaveJob(job, checkpoint));
  Reopen();
  EXPECT_EQ(log_->GetJob(*first)->job.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(log_->GetJob(*first)->checkpoint, checkpoint);
  EXPECT_EQ(log_->CreateJob(request, 9).value(), *first);
  const auto jobs = log_->ListJobs();
  ASSERT_OK(jobs);
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].job.job_id(), *third);
  EXPECT_EQ((*jobs)[2].job.job_id(), *first);
  // All or none.
  const std::vector<TuningLog::JobProgress> two = {
      {.job = (*jobs)[2].job, .checkpoint = "of the first"},
      {.job = (*jobs)[0].job, .checkpoint = "of the third"}};
  ASSERT_OK(log_->SaveJobs(two));
  EXPECT_EQ(log_->GetJob(*first)->checkpoint, "of the first");
  EXPECT_EQ(log_->GetJob(*third)->checkpoint, "of the third");
  job.set_job_id(99);
  EXPECT_STATUS(log_->SaveJob(job, ""), kNotFound, "99");
  const std::vector<TuningLog::JobProgress> unknown = {
      {.job = (*jobs)[2].job, .checkpoint = "later"}, {.job = job}};
  EXPECT_STATUS(log_->SaveJobs(unknown), kNotFound, "99");
  EXPECT_EQ(log_->GetJob(*first)->checkpoint, "of the first");
  EXPECT_STATUS(log_->GetJob(99), kNotFound, "99");
}

TEST_P(TuningLogContract, KeepsTheWorkOfJobsRowByRow) {
  v1::SubmitJobRequest request;
  const int64_t one = log_->CreateJob(request, 1).value();
  const int64_t two = log_->CreateJob(request, 2).value();
  const auto progress = [](int64_t id) {
    TuningLog::JobProgress progress;
    progress.job.set_job_id(id);
    progress.checkpoint = "checkpoint";
    return progress;
  };
  const auto work = [this](int64_t id) {
    std::vector<std::string> rows;
    const auto job = log_->GetJob(id);
    for (const TuningLog::JobWork& row : job->work) {
      rows.push_back(absl::StrCat(row.task, "/", row.number, "=", row.bytes));
    }
    return absl::StrJoin(rows, " ");
  };
  std::vector<TuningLog::JobProgress> both = {progress(one), progress(two)};
  both[0].opened = {{1, 7, "c"}, {0, 9, "b"}, {0, 2, "a"}};
  both[1].opened = {{0, 2, "other"}};
  ASSERT_OK(log_->SaveJobs(both));
  EXPECT_EQ(work(one), "0/2=a 0/9=b 1/7=c");
  Reopen();
  // What is closed goes, what is opened again is replaced, the rest stays; what
  // was never there may be closed.
  both = {progress(one)};
  both[0].opened = {{0, 9, std::string("\0b", 2)}, {0, 10, "d"}};
  both[0].closed = {{0, 2}, {5, 5}};
  ASSERT_OK(log_->SaveJobs(both));
  EXPECT_EQ(work(one),
            absl::StrCat("0/9=", std::string("\0b", 2), " 0/10=d 1/7=c"));
  EXPECT_EQ(work(two), "0/2=other");
  const auto jobs = log_->ListJobs();
  ASSERT_OK(jobs);
  for (const TuningLog::StoredJob& job : *jobs) {
    EXPECT_EQ(job.work.size(), job.job.job_id() == one ? 3u : 1u);
  }
  // None of it when one of the jobs does not exist.
  both = {progress(one), progress(99)};
  both[0].no_work = true;
  EXPECT_STATUS(log_->SaveJobs(both), kNotFound, "99");
  EXPECT_EQ(log_->GetJob(one)->work.size(), 3u);
  both = {progress(one)};
  both[0].opened = {{0, 11, "of no use"}};
  both[0].no_work = true;
  ASSERT_OK(log_->SaveJobs(both));
  EXPECT_EQ(work(one), "");
  EXPECT_EQ(work(two), "0/2=other");
}

TEST_P(TuningLogContract, HandsOutEveryOrdinalOnce) {
  EXPECT_EQ(log_->ReserveOrdinals(1, 0, 10).value(), 0);
  EXPECT_EQ(log_->ReserveOrdinals(1, 0, 5).value(), 10);
  EXPECT_EQ(log_->ReserveOrdinals(1, 1, 5).value(), 0);
  EXPECT_EQ(log_->ReserveOrdinals(2, 0, 5).value(), 0);
  Reopen();
  EXPECT_EQ(log_->ReserveOrdinals(1, 0, 1).value(), 15);
  EXPECT_STATUS(log_->ReserveOrdinals(1, 0, 0), kInvalidArgument, "0");
  EXPECT_STATUS(log_->ReserveOrdinals(1, 0, -4), kInvalidArgument, "-4");

  std::vector<std::thread> threads;
  std::vector<int64_t> firsts(4 * 20);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        firsts[t * 20 + i] = log_->ReserveOrdinals(7, 0, 3).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<int64_t> distinct(firsts.begin(), firsts.end());
  EXPECT_EQ(distinct.size(), firsts.size());
  EXPECT_EQ(*distinct.rbegin(), 79 * 3);
}

TEST_P(TuningLogContract, ReadersSeeWholeBatchesWhileWritersWrite) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  constexpr int kWriters = 3, kBatches = 20, kBatch = 5;
  std::atomic<int> acked{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> readers, writers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done) {
        const int before = acked;
        const int64_t count = log_->CountRecords().value();
        EXPECT_GE(count, before);
        EXPECT_EQ(count % kBatch, 0);
        EXPECT_OK(log_->Best(KeyFor(workload)));
      }
    });
  }
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int b = 0; b < kBatches; ++b) {
        std::vector<v1::TrialResult> batch;
        for (int i = 0; i < kBatch; ++i) {
          batch.push_back(OkResult(absl::StrCat(w, "/", b, "/", i), workload,
                                   absl::StrCat("s", b), 1000 - b));
        }
        EXPECT_OK(log_->Append(batch, 1));
        acked += kBatch;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(*log_->CountRecords(), kWriters * kBatches * kBatch);
  EXPECT_EQ(AllRecords(*log_, workload).size(), 300u);
}

}  // namespace regatta::testing

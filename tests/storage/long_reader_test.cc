// 43: readers that hold a state of the log, or stand still, while results
// arrive.
#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"
#include "tests/support/scale.h"

namespace regatta::testing {
namespace {

// Results of ten minutes of a busy fleet at REGATTA_TEST_SCALE 50: 400 a
// second.
constexpr int kBatch = 20;
int Batches() { return Scaled(240); }

class LongReader : public ::testing::Test {
 protected:
  LongReader() : path_(dir_.path() + "/log") {
    log_ = *OpenTuningLog(path_);
    EXPECT_OK(log_->PutWorkload(workload_));
    EXPECT_OK(log_->CreateJob({}, 1));
    EXPECT_OK(log_->Append({Trial(next_++)}, 1));
  }
  v1::TrialResult Trial(int ordinal) {
    auto result =
        OkResult(absl::StrCat("1/0/", ordinal), workload_,
                 absl::StrCat("tile{mi=", ordinal, "}"), 1000 + ordinal);
    result.mutable_spec()->set_ordinal(ordinal);
    return result;
  }
  struct Ingest {
    absl::Duration p99;
    int64_t longest_wal = 0;  // bytes
  };
  Ingest Append(int batches) {
    std::vector<absl::Duration> took;
    Ingest ingest;
    for (int b = 0; b < batches; ++b) {
      std::vector<v1::TrialResult> batch;
      for (int i = 0; i < kBatch; ++i) batch.push_back(Trial(next_++));
      const SteadyTime start = RealClock().Steady();
      EXPECT_OK(log_->Append(batch, b));
      took.push_back(RealClock().Steady() - start);
      ingest.longest_wal = std::max(ingest.longest_wal, WalBytes());
    }
    std::sort(took.begin(), took.end());
    ingest.p99 = took[took.size() * 99 / 100];
    std::cout << batches * kBatch << " results, p99 of an append "
              << absl::FormatDuration(ingest.p99) << ", write-ahead log of "
              << ingest.longest_wal / 1024 << " KiB at most\n";
    return ingest;
  }
  int64_t WalBytes() const {
    return static_cast<int64_t>(std::filesystem::file_size(path_ + "-wal"));
  }

  TempDir dir_;
  std::string path_;
  const WorkloadInfo workload_ = Matmul(8, 8, 8);
  std::unique_ptr<TuningLog> log_;
  int next_ = 0;
};

// A snapshot, a rebuild, a check: what the server itself reads in one state.
TEST_F(LongReader, AStateThatIsHeldForLongHoldsUpNoWriter) {
  Ingest beside;
  int visited = 0;
  EXPECT_OK(log_->ForEachBest([&](const WorkloadInfo&, const BestKnown& best) {
    ++visited;
    beside = Append(Batches());
    // The reader's state is that of before.
    EXPECT_EQ(best.record.result.spec().trial_id(), "1/0/0");
    EXPECT_EQ(best.boards, 1);
    return true;
  }));
  EXPECT_EQ(visited, 1);
  EXPECT_LT(beside.p99, absl::Milliseconds(200));
  // It grows by what arrives, and by no more.
  EXPECT_LT(beside.longest_wal,
            (int64_t{8} << 20) + int64_t{Batches()} * kBatch * 8192);
  // It begins anew once nobody reads the old state any more, and is cut to the
  // size that it is to have at most.
  const int64_t at_end = WalBytes();
  const Ingest after = Append(std::max(60, Batches() / 4));
  EXPECT_LE(after.longest_wal, at_end + (int64_t{1} << 20));
  EXPECT_LE(WalBytes(), int64_t{64} << 20);
  EXPECT_EQ(*log_->CountRecords(), next_);
}

// Whatever goes out to a client is read in pages, between which no state is
// held: one that takes nothing keeps nobody from the write-ahead log, until the
// server gives it up after a minute (StreamSender).
TEST_F(LongReader, AReaderThatStandsStillHoldsNoState) {
  Append(60);
  std::mutex mutex;
  std::condition_variable changed;
  bool stands = false, go_on = false;
  int64_t exported = 0;
  std::thread reader([&] {
    EXPECT_OK(log_->exchange().Export([&](const v1::LogEntry&) {
      if (++exported != 100) return true;
      std::unique_lock lock(mutex);
      stands = true;
      changed.notify_all();
      changed.wait(lock, [&] { return go_on; });
      return true;
    }));
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stands; });
  }
  const Ingest beside = Append(Batches());
  {
    std::lock_guard lock(mutex);
    go_on = true;
  }
  changed.notify_all();
  reader.join();
  EXPECT_LT(beside.p99, absl::Milliseconds(200));
  // A checkpoint's worth of 4 MiB, and what comes while it runs.
  EXPECT_LT(beside.longest_wal, int64_t{8} << 20);
}

}  // namespace
}  // namespace regatta::testing

// 43: readers that hold a state of the log, or stand still, while results
// arrive.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/sqlite/sqlite_tuning_log.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"
#include "tests/support/scale.h"

namespace regatta::testing {
namespace {

// Results of ten minutes of a busy fleet at REGATTA_TEST_SCALE 50: 400 a
// second.
constexpr int kBatch = 20;
int Batches() { return Scaled(240); }
// Of a write-ahead log of 512 pages, each with a head of 24 bytes, and its own.
constexpr int64_t kLimit = 32 + 512 * (4096 + 24);

class LongReader : public ::testing::Test {
 protected:
  LongReader() : path_(dir_.path() + "/log") {
    log_ = *OpenTuningLog(path_);
    EXPECT_OK(log_->PutWorkload(workload_));
    EXPECT_OK(log_->CreateJob({}, 1));
    EXPECT_OK(log_->ReserveOrdinals(1, 0, 1'000'000));
    EXPECT_OK(log_->Append({Trial(next_++)}, 1));
  }
  v1::TrialResult Trial(int ordinal) {
    auto result =
        OkResult(absl::StrCat("1/0/", ordinal), workload_,
                 absl::StrCat("tile{mi=", ordinal, "}"), 1000 + ordinal);
    result.mutable_spec()->set_ordinal(ordinal);
    return result;
  }
  void Reopen(sqlite::WalLimits limits) {
    log_.reset();
    log_ = *sqlite::OpenSqliteLog(path_, {}, limits);
  }
  std::set<std::string> FilesBeside() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
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

// A snapshot: what is done with an answer may take its time.
TEST_F(LongReader, WhoeverIsGivenTheAnswersHoldsNoState) {
  Append(60);
  Ingest beside;
  int visited = 0;
  EXPECT_OK(log_->ForEachBest([&](const WorkloadInfo&, const BestKnown& best) {
    ++visited;
    beside = Append(Batches());
    EXPECT_EQ(best.record.result.spec().trial_id(), "1/0/0");
    EXPECT_EQ(best.boards, 1);
    return true;
  }));
  EXPECT_EQ(visited, 1);
  EXPECT_LT(beside.p99, absl::Milliseconds(200));
  EXPECT_LT(beside.longest_wal, int64_t{8} << 20);
  EXPECT_EQ(*log_->CountRecords(), next_);
}

// A check belongs to one state. It gives it up, which lets the write-ahead log
// begin anew, and goes on with a copy.
TEST_F(LongReader, ACheckThatHoldsItsStateForTooLongGoesOnWithACopy) {
  Reopen({.checkpoint = 16, .most = 512});
  Append(10);
  const auto files = FilesBeside();
  Ingest beside;
  int64_t held = 0;
  std::set<std::string> phases;
  int copied = 0, findings = 0;
  const auto check = log_->upkeep().Check(
      [&](const LogFinding&) { ++findings; },
      [&](const std::string& phase, int64_t, int64_t) {
        phases.insert(phase);
        copied += phase == "copying pages";
        if (held == 0 && phases.size() == 2) {
          // In the middle of the read. The state is held until this returns.
          beside = Append(Batches() / 4);
          held = WalBytes();
          EXPECT_GT(held, kLimit) << "nothing stood in its way";
        }
        return true;
      });
  ASSERT_OK(check);
  EXPECT_EQ(findings, 0);
  EXPECT_EQ(check->records, next_) << "those of the copy";
  EXPECT_GE(copied, 1);
  EXPECT_GE(phases.size(), 3u);
  EXPECT_LT(beside.p99, absl::Milliseconds(200));
  EXPECT_EQ(FilesBeside(), files) << "the copy is gone";
  // It grew by what came while the state was held, and goes no further.
  Append(2);
  held = WalBytes();
  EXPECT_EQ(Append(Batches() / 4).longest_wal, held);
}

// A reader that is asked ends by itself: the write-ahead log has its limit, and
// what may come while the reader is on its way out.
TEST_F(LongReader, TheWriteAheadLogKeepsToItsLimit) {
  Reopen({.checkpoint = 16, .most = 512});
  Append(10);
  std::atomic<bool> done = false;
  int checks = 0;
  std::thread reader([&] {
    while (!done) {
      ++checks;
      const auto check = log_->upkeep().Check(
          [](const LogFinding& found) {
            ADD_FAILURE() << found.where << found.what;
          },
          nullptr);
      EXPECT_OK(check);
    }
  });
  const Ingest beside = Append(Batches() / 2);
  done = true;
  reader.join();
  EXPECT_GE(checks, 1);
  EXPECT_LT(beside.p99, absl::Milliseconds(200));
  // A sixteenth more for each that is asked, and a commit of 20 results beyond.
  EXPECT_LT(beside.longest_wal, 2 * kLimit);
}

// A copy that cannot hold its state comes to its end all the same.
TEST_F(LongReader, ABackupGoesOnAtTheWritersPace) {
  Reopen({.checkpoint = 16, .most = 512});
  // Of more pages than a state is held for without being asked.
  std::vector<v1::TrialResult> many;
  while (many.size() < 40'000) many.push_back(Trial(next_++));
  ASSERT_OK(log_->Append(many, 1));
  Append(2);
  ASSERT_GT(std::filesystem::file_size(path_), size_t{5} << 20);
  const std::string copy = dir_.path() + "/copy";
  const int before = next_;
  int64_t at_last_step = 0, last_done = -1;
  int begun = 0, steps = 0;
  ASSERT_OK(log_->upkeep().Backup(
      copy, [&](const std::string&, int64_t done, int64_t) {
        begun += done <= last_done || last_done < 0;
        last_done = done;
        // This thread alone appends: it is what the last step saw.
        at_last_step = next_;
        // More than may come while a state is held, then some with each step.
        if (++steps < 10) Append(steps == 1 ? 40 : 1);
        return true;
      }));
  EXPECT_EQ(begun, 2) << "the state that was held, then the writer's steps";
  EXPECT_GT(at_last_step, before);
  const auto opened = OpenTuningLog(copy);
  ASSERT_OK(opened);
  EXPECT_EQ(*(*opened)->CountRecords(), at_last_step);
  int findings = 0;
  const auto check = (*opened)->upkeep().Check(
      [&](const LogFinding&) { ++findings; }, nullptr);
  ASSERT_OK(check);
  EXPECT_EQ(findings, 0);
  EXPECT_EQ(check->records, at_last_step);
  EXPECT_EQ((*opened)->LogId(), log_->LogId());
  // Nothing is in its way any more.
  const int64_t at_end = WalBytes();
  EXPECT_EQ(Append(Batches() / 4).longest_wal, at_end);
  // Stopped in the writer's steps, it leaves nothing.
  steps = 0;
  EXPECT_STATUS(
      log_->upkeep().Backup(dir_.path() + "/half",
                            [&](const std::string&, int64_t done, int64_t) {
                              if (++steps == 1) Append(40);
                              const bool again = steps > 1 && done <= last_done;
                              last_done = done;
                              return !again;
                            }),
      kCancelled, "stopped");
  EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/half"));
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

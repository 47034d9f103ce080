#include "tests/bench/storage_measures.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"

namespace regatta::bench {
namespace {

// Samples of several threads.
class Samples {
 public:
  void Add(const std::vector<double>& seconds) {
    std::lock_guard lock(mutex_);
    all_.insert(all_.end(), seconds.begin(), seconds.end());
  }
  std::vector<double> Take() { return std::move(all_); }

 private:
  std::mutex mutex_;
  std::vector<double> all_;
};

// Jobs of the plan as batches of a few records, without end.
class BatchSource {
 public:
  BatchSource(const PlantedLog& plan, int64_t first_job, int64_t stride,
              int batch)
      : plan_(plan), next_job_(first_job), stride_(stride), batch_(batch) {}

  std::vector<v1::TrialResult> Next() {
    std::vector<v1::TrialResult> results;
    while (static_cast<int>(results.size()) < batch_) {
      if (at_ == job_.size()) {
        job_ = plan_.MakeJob(next_job_).results;
        next_job_ += stride_;
        at_ = 0;
      }
      results.push_back(std::move(job_[at_++]));
    }
    return results;
  }

 private:
  const PlantedLog& plan_;
  int64_t next_job_;
  const int64_t stride_;
  const int batch_;
  std::vector<v1::TrialResult> job_;
  size_t at_ = 0;
};

}  // namespace

double SecondsOf(const std::function<void()>& work) {
  const SteadyTime start = RealClock().Steady();
  work();
  return absl::ToDoubleSeconds(RealClock().Steady() - start);
}

Spread SpreadOf(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  return {Median(seconds), Quantile(seconds, 0.99)};
}

Spread TimeEach(int times, const std::function<void(int)>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    seconds.push_back(SecondsOf([&] { work(i); }));
  }
  return SpreadOf(std::move(seconds));
}

void DropFromPageCache(const std::string& path) {
  for (const char* suffix : {"", "-wal"}) {
    const int fd = open(absl::StrCat(path, suffix).c_str(), O_RDONLY);
    if (fd < 0) continue;
    CHECK(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0)
        << path << suffix;
    close(fd);
  }
}

absl::Status LeaveUncheckpointed(const std::string& path,
                                 const PlantedLog& plan, int records,
                                 int64_t first_job) {
  const pid_t child = fork();
  if (child == 0) {
    auto log = OpenTuningLog(path);
    if (!log.ok()) _exit(1);
    BatchSource source(plan, first_job, 1, 1);
    for (int i = 0; i < records; ++i) {
      if (!(*log)->Append(source.Next(), 1).ok()) _exit(2);
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the writer ended with ", WEXITSTATUS(status)));
}

Spread RawSync(const std::string& folder) {
  const std::string path = folder + "/raw-sync";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(fd >= 0) << path;
  const std::string page(4096, 'x');
  const Spread spread = TimeEach(200, [&](int i) {
    CHECK(pwrite(fd, page.data(), page.size(), i * 4096) == 4096 &&
          fdatasync(fd) == 0)
        << path;
  });
  close(fd);
  unlink(path.c_str());
  return spread;
}

absl::StatusOr<SustainedResult> Sustain(TuningLog& log, const PlantedLog& plan,
                                        const SustainedLoad& load) {
  Samples acks, lookups;
  std::atomic<bool> over = false;
  std::atomic<int64_t> records = 0;
  std::mutex mutex;
  absl::Status first_error;
  const auto note = [&](const absl::Status& status) {
    if (status.ok()) return;
    std::lock_guard lock(mutex);
    first_error = status;
  };
  std::vector<std::thread> threads;
  const SteadyTime start = RealClock().Steady();
  for (int w = 0; w < load.writers; ++w) {
    threads.emplace_back([&, w] {
      BatchSource source(plan, load.first_job + w, load.writers, load.batch);
      std::vector<double> seconds;
      while (!over) {
        const auto batch = source.Next();
        absl::Status status;
        seconds.push_back(
            SecondsOf([&] { status = log.Append(batch, 1).status(); }));
        note(status);
        if (!status.ok()) break;
        records += load.batch;
      }
      acks.Add(seconds);
    });
  }
  for (int r = 0; r < load.readers; ++r) {
    threads.emplace_back([&, r] {
      Random random(r);
      std::vector<double> seconds;
      while (!over) {
        const BestKey key = plan.KeyOfJob(random.Below(plan.jobs()));
        absl::Status status;
        seconds.push_back(SecondsOf([&] { status = log.Best(key).status(); }));
        note(status);
        if (!status.ok()) break;
      }
      lookups.Add(seconds);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(load.seconds));
  over = true;
  for (std::thread& thread : threads) thread.join();
  RETURN_IF_ERROR(first_error);
  SustainedResult result;
  result.seconds = absl::ToDoubleSeconds(RealClock().Steady() - start);
  result.records = records;
  result.ack = SpreadOf(acks.Take());
  std::vector<double> seconds = lookups.Take();
  result.lookups = static_cast<int64_t>(seconds.size());
  result.lookup = SpreadOf(std::move(seconds));
  return result;
}

}  // namespace regatta::bench

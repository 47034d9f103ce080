// The tuning log under load: how fast it takes records durably while it is
// queried, how fast it answers and opens at size, and what a record costs.
//
// Plants a log of --records records through the public interface, measures, and
// prints one table; exits 1 when a requirement is missed.
//   storage_bench                       100,000 records, about half a minute
//   storage_bench --records 5000000     about 2.3 GB below --dir
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/random.h"
#include "server/job/checkpoint.h"
#include "server/query/best_memo.h"
#include "server/query/best_query.h"
#include "tests/bench/planted_log.h"
#include "tests/bench/storage_measures.h"

namespace regatta::bench {
namespace {

constexpr int64_t kSmallLog = 100'000;
constexpr double kSmallLookup = 100e-6;
constexpr double kLargeLookup = 200e-6;
constexpr double kOpen = 1;
constexpr double kRecordsPerS = 1000;

struct Flags {
  int64_t records = kSmallLog;
  uint64_t seed = 1;
  double seconds = 10;
  int lookups = 20'000;
  std::string dir;
  bool keep = false;
};

// Rows of the table, printed as they come.
class Report {
 public:
  void Row(const std::string& what, const std::string& value) {
    absl::PrintF("%-58s %s\n", what, value);
    std::cout.flush();
  }
  void Rate(const std::string& what, double value, double least) {
    Judge(what, absl::StrFormat("%.0f a second", value),
          absl::StrFormat("at least %.0f", least), value >= least);
  }
  void Time(const std::string& what, const Spread& spread) {
    Row(what, Print(spread));
  }
  void Time(const std::string& what, const Spread& spread, double limit) {
    Judge(what, Print(spread), "median under " + Print(limit),
          spread.median < limit);
  }
  bool missed() const { return missed_; }

  static std::string Print(double seconds) {
    if (seconds < 1e-3) return absl::StrFormat("%.1f us", seconds * 1e6);
    if (seconds < 1) return absl::StrFormat("%.2f ms", seconds * 1e3);
    return absl::StrFormat("%.2f s", seconds);
  }
  static std::string Print(const Spread& spread) {
    return absl::StrCat(Print(spread.median), " median, ", Print(spread.p99),
                        " p99");
  }

 private:
  void Judge(const std::string& what, const std::string& value,
             const std::string& requirement, bool pass) {
    Row(what, absl::StrCat(value, "  (", requirement, ": ",
                           pass ? "pass" : "MISS", ")"));
    missed_ = missed_ || !pass;
  }

  bool missed_ = false;
};

template <typename T>
T Must(absl::StatusOr<T> value) {
  CHECK(value.ok()) << value.status().ToString();
  return *std::move(value);
}
void Must(const absl::Status& status) {
  CHECK(status.ok()) << status.ToString();
}

class Bench {
 public:
  Bench(const Flags& flags, std::string folder)
      : flags_(flags),
        folder_(std::move(folder)),
        path_(folder_ + "/log"),
        plan_(flags.records, flags.seed),
        lookup_limit_(flags.records <= kSmallLog ? kSmallLookup
                                                 : kLargeLookup) {}

  bool Run() {
    report_.Row("records planted",
                absl::StrCat(Planned(), " of ", plan_.workloads().size(),
                             " workloads, seed ", flags_.seed));
    report_.Time("the disk: fdatasync of an appended page", RawSync(folder_));
    Plant();
    MeasureOpening();
    log_ = Must(OpenTuningLog(path_));
    MeasureLookups();
    MeasureOtherReads();
    MeasureWriting();
    MeasureJobs();
    MeasureManyTimed();
    report_.Row(
        "best-known rebuilt from the records",
        Report::Print(SecondsOf([&] { Must(log_->RebuildBest(nullptr)); })));
    log_.reset();
    return !report_.missed();
  }

 private:
  int64_t Planned() const { return plan_.jobs() * PlantedLog::kRecordsPerJob; }

  void Plant() {
    log_ = Must(OpenTuningLog(path_));
    const double seconds =
        SecondsOf([&] { Must(plan_.WriteTo(*log_, /*threads=*/16)); });
    report_.Row("planting in batches of 440 from 16 threads",
                absl::StrFormat("%.0f records a second",
                                static_cast<double>(Planned()) / seconds));
    CHECK(Must(log_->CountRecords()) == Planned());
    report_.Row("closing", Report::Print(SecondsOf([&] { log_.reset(); })));
    const double bytes = static_cast<double>(std::filesystem::file_size(path_));
    report_.Row("file",
                absl::StrFormat("%.1f MB, %.0f bytes a record", bytes / 1e6,
                                bytes / static_cast<double>(Planned())));
  }

  void Open() { log_ = Must(OpenTuningLog(path_)); }

  void MeasureOpening() {
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
      seconds.push_back(SecondsOf([&] { Open(); }));
      log_.reset();
    }
    report_.Time("opening", SpreadOf(seconds), kOpen);
    DropFromPageCache(path_);
    report_.Time("opening, nothing of it in the page cache",
                 TimeEach(1, [&](int) { Open(); }), kOpen);
    log_.reset();
    constexpr int kLeft = 150;
    const int64_t job = plan_.jobs() + 1'000'000;
    Must(LeaveUncheckpointed(path_, plan_, kLeft, job));
    DropFromPageCache(path_);
    report_.Time(
        absl::StrCat("opening after SIGKILL, ", kLeft, " commits in the WAL"),
        TimeEach(1, [&](int) { Open(); }), kOpen);
    CHECK(Must(log_->CountRecords()) == Planned() + kLeft);
    log_.reset();
  }

  // Keys that have answers, drawn anew.
  std::vector<int64_t> DrawJobs(int count, uint64_t seed) const {
    Random random(seed);
    std::vector<int64_t> jobs;
    for (int i = 0; i < count; ++i) jobs.push_back(random.Below(plan_.jobs()));
    return jobs;
  }

  void LookUp(int64_t job) {
    CHECK(Must(log_->Best(plan_.KeyOfJob(job)))->confirmed);
  }

  void MeasureLookups() {
    log_.reset();
    DropFromPageCache(path_);
    Open();
    const auto cold = DrawJobs(500, 2);
    report_.Time("best-known lookup, the file not in the page cache",
                 TimeEach(500, [&](int i) { LookUp(cold[i]); }));
    // Every key once: from here on the page cache holds what lookups need.
    for (int64_t job = 0; job < plan_.jobs(); ++job) LookUp(job);
    const auto jobs = DrawJobs(flags_.lookups, 3);
    report_.Time("best-known lookup, in process",
                 TimeEach(flags_.lookups, [&](int i) { LookUp(jobs[i]); }),
                 lookup_limit_);
    BestMemo memo;
    BestContext context;
    context.source = log_.get();
    context.memo = &memo;
    context.measure_protocol = PlantedLog::kProtocol;
    const auto target = std::make_shared<const CompletedTarget>(CompletedTarget{
        plan_.target(), plan_.target().ToString(), PlantedLog::kCompiler});
    std::vector<BestQuestion> questions;
    for (const int64_t job : jobs) {
      const BestKey key = plan_.KeyOfJob(job);
      const PlantedWorkload& workload =
          plan_.workloads()[plan_.WorkloadOfJob(job)];
      BestQuestion& question = questions.emplace_back();
      question.workload_key = key.workload_key;
      question.workload_text = workload.info.text;
      question.device_class = key.device_class;
      question.policy.set_threads(key.threads);
      question.policy.set_cache(key.cache);
      question.target = target;
    }
    report_.Time("graded answer (server/query), in process",
                 TimeEach(flags_.lookups,
                          [&](int i) {
                            const auto answer =
                                Must(AnswerBest(context, questions[i]));
                            CHECK(answer.grade() == "exact") << answer.reason();
                          }),
                 lookup_limit_);
  }

  void MeasureOtherReads() {
    const auto jobs = DrawJobs(200, 4);
    report_.Time("8 neighbour shapes", TimeEach(200, [&](int i) {
                   const auto& workload =
                       plan_.workloads()[plan_.WorkloadOfJob(jobs[i])];
                   Must(log_->BestOfNeighbours(workload.info,
                                               plan_.KeyOfJob(jobs[i]), 8));
                 }));
    int64_t visited = 0;
    const double seconds = SecondsOf([&] {
      for (int i = 0; i < 20; ++i) {
        Must(log_->ForEachRecord(
            {.workload_key = plan_.KeyOfJob(jobs[i]).workload_key},
            [&](const StoredRecord&) { return ++visited > 0; }));
      }
    });
    report_.Row("reading all records of a workload",
                absl::StrFormat("%.0f records a second",
                                static_cast<double>(visited) / seconds));
  }

  // A workload that was tuned every night: its best was timed again and again.
  void MeasureManyTimed() {
    constexpr int kTimes = 1000;
    std::vector<v1::TrialResult> again;
    const PlantedJob job = plan_.MakeJob(0);
    const v1::TrialResult& best =
        job.results[PlantedLog::kRecordsPerJob - PlantedLog::kConfirms];
    CHECK(best.spec().trial_id() == job.verdict.trial_id);
    for (int i = 0; i < kTimes; ++i) {
      again.push_back(best);
      again.back().mutable_spec()->set_trial_id(absl::StrCat("again/", i));
    }
    Must(log_->Append(again, 1));
    Must(log_->Publish(job.verdict, 1));
    report_.Time(absl::StrCat("lookup of a schedule with ", kTimes, " records"),
                 TimeEach(200, [&](int) { LookUp(0); }));
  }

  void ReportLoad(const std::string& what, const SustainedResult& result) {
    report_.Rate(absl::StrCat(what, ": durable records"),
                 result.records_per_s(), kRecordsPerS);
    report_.Time("  from call to acknowledgement", result.ack);
    report_.Time(absl::StrFormat("  lookups meanwhile (%.0f a second)",
                                 result.lookups / result.seconds),
                 result.lookup, lookup_limit_);
  }

  void MeasureWriting() {
    SustainedLoad load{.seconds = flags_.seconds,
                       .first_job = plan_.jobs() + 2'000'000};
    ReportLoad("16 callers, a record each call",
               Must(Sustain(*log_, plan_, load)));
    load.writers = 1;
    load.batch = 16;
    load.first_job += 1'000'000;
    ReportLoad("1 caller, 16 records each call",
               Must(Sustain(*log_, plan_, load)));
    load.batch = 1;
    load.readers = 0;
    load.seconds = std::min(load.seconds, 3.0);
    load.first_job += 1'000'000;
    const SustainedResult alone = Must(Sustain(*log_, plan_, load));
    report_.Time("1 caller, 1 record: from call to acknowledgement", alone.ack);
  }

  // What the server saves of a job whenever it hands out work.
  void MeasureJobs() {
    for (const int in_flight : {8, 500}) {
      v1::SubmitJobRequest request;
      request.set_request_id(absl::StrCat("bench-", in_flight));
      v1::Job job;
      job.set_job_id(Must(log_->CreateJob(request, 1)));
      job.add_tasks()->set_workload(plan_.workloads()[0].info.text);
      TaskCheckpoint task{.target = plan_.target().ToString(),
                          .compiler = PlantedLog::kCompiler};
      for (int i = 0; i < in_flight; ++i) {
        task.in_flight.push_back(
            {v1::TRIAL_KIND_CANDIDATE,
             {{i, plan_.workloads()[0].schedules[i % 48], 300'000}}});
      }
      size_t bytes = 0;
      const Spread print =
          TimeEach(100, [&](int) { bytes = PrintCheckpoint({task}).size(); });
      const Spread save = TimeEach(100, [&](int i) {
        // SQLite writes nothing when nothing differs.
        task.search_ms = i;
        Must(log_->SaveJob(job, PrintCheckpoint({task})));
      });
      report_.Time(absl::StrCat("a job's progress with ", in_flight,
                                " trials out, ", bytes, " bytes: to text"),
                   print);
      report_.Time("  to text and saved durably", save);
    }
    report_.Time("the least durable write (ordinals)", TimeEach(100, [&](int) {
                   Must(log_->ReserveOrdinals(1, 0, 1));
                 }));
  }

  const Flags flags_;
  const std::string folder_, path_;
  const PlantedLog plan_;
  const double lookup_limit_;
  Report report_;
  std::unique_ptr<TuningLog> log_;
};

int Main(int argc, char** argv) {
  CLI::App app("The tuning log under load");
  Flags flags;
  flags.dir = std::filesystem::temp_directory_path().string();
  app.add_option("--records", flags.records, "Records to plant")
      ->check(
          CLI::Range(int64_t{PlantedLog::kRecordsPerJob}, int64_t{1} << 40));
  app.add_option("--seconds", flags.seconds, "Of each sustained load");
  app.add_option("--lookups", flags.lookups, "Timed lookups of each kind");
  app.add_option("--seed", flags.seed, "Of the planted records");
  app.add_option("--dir", flags.dir, "Where the log is made, and removed");
  app.add_flag("--keep", flags.keep, "Leave the log there");
  CLI11_PARSE(app, argc, argv);
  std::string folder = flags.dir + "/storage-bench-XXXXXX";
  CHECK(mkdtemp(folder.data()) != nullptr) << folder;
  const bool passed = Bench(flags, folder).Run();
  if (flags.keep) {
    std::cout << "the log is " << folder << "/log\n";
  } else {
    std::filesystem::remove_all(folder);
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }

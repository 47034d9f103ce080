// What another log says goes in and comes out again, apart from our own.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "storage/log_line.h"
#include "storage/sqlite/restore.h"
#include "tests/storage/fault_vfs.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kAdded = v1::ImportVerdict::STATUS_ADDED;
constexpr auto kKnown = v1::ImportVerdict::STATUS_KNOWN;
constexpr auto kRefused = v1::ImportVerdict::STATUS_REFUSED;

v1::TrialResult Trial(int64_t job, int64_t ordinal,
                      const WorkloadInfo& workload, const std::string& schedule,
                      int64_t time_ns) {
  v1::TrialResult result =
      OkResult(absl::StrCat(job, "/0/", ordinal), workload, schedule, time_ns);
  result.mutable_spec()->set_job_id(job);
  result.mutable_spec()->set_ordinal(ordinal);
  return result;
}

// Reads the texts that Matmul makes.
absl::StatusOr<WorkloadInfo> Describe(const std::string& text) {
  int m = 0, n = 0, k = 0;
  if (sscanf(text.c_str(), "matmul(m=%d,n=%d,k=%d)", &m, &n, &k) != 3) {
    return absl::InvalidArgumentError("no matmul");
  }
  return Matmul(m, n, k);
}

std::vector<v1::LogEntry> ExportOf(TuningLog& log) {
  std::vector<v1::LogEntry> entries;
  EXPECT_OK(log.exchange().Export([&](const v1::LogEntry& entry) {
    entries.push_back(entry);
    return true;
  }));
  return entries;
}

std::vector<v1::ImportVerdict> ImportInto(
    TuningLog& log, const std::vector<v1::LogEntry>& entries,
    const std::string& name = "lab-b") {
  std::vector<const v1::LogEntry*> pointers;
  for (const auto& entry : entries) pointers.push_back(&entry);
  const auto check = [](const v1::TrialSpec& spec) {
    return spec.target() == "abacus"
               ? absl::InvalidArgumentError("no such target")
               : absl::OkStatus();
  };
  auto verdicts = log.exchange().Import(
      pointers, {.name = name, .describe = Describe, .check_spec = check});
  EXPECT_OK(verdicts);
  return verdicts.ok() ? *verdicts : std::vector<v1::ImportVerdict>();
}

std::map<int, int> Tally(const std::vector<v1::ImportVerdict>& verdicts) {
  std::map<int, int> tally;
  for (const auto& verdict : verdicts) ++tally[verdict.status()];
  return tally;
}

// The lines of an export but for the fields that an import changes.
std::vector<std::string> Comparable(std::vector<v1::LogEntry> entries) {
  std::vector<std::string> lines;
  for (v1::LogEntry& entry : entries) {
    if (entry.has_log()) entry.mutable_log()->clear_log_id();
    if (entry.has_record()) {
      entry.mutable_record()->mutable_result()->clear_provenance();
    }
    lines.push_back(PrintLogLine(entry));
  }
  return lines;
}

class Exchange : public ::testing::Test {
 protected:
  std::unique_ptr<TuningLog> Open(const std::string& name) {
    auto log = OpenTuningLog(dir_.path() + "/" + name);
    EXPECT_OK(log);
    return *std::move(log);
  }

  // A log with jobs, failures, verdicts and wrong results in random order.
  std::unique_ptr<TuningLog> Planted(const std::string& name, uint64_t seed) {
    auto log = Open(name);
    Random random(seed);
    std::vector<WorkloadInfo> workloads;
    for (int i = 1; i <= 4; ++i) {
      workloads.push_back(Matmul(8 * i, 8, 8));
      EXPECT_OK(log->PutWorkload(workloads.back()));
    }
    for (int64_t job = 1; job <= 3; ++job) {
      v1::SubmitJobRequest request;
      request.set_name(absl::StrCat("job ", job));
      request.add_tasks()->set_workload("matmul(m=8,n=8,k=8)");
      EXPECT_EQ(*log->CreateJob(request, 100 + job), job);
      EXPECT_OK(log->ReserveOrdinals(job, 0, 128));
      for (int64_t ordinal = 0; ordinal < 64; ++ordinal) {
        const WorkloadInfo& workload = workloads[random.Below(4)];
        v1::TrialResult result =
            Trial(job, ordinal, workload,
                  absl::StrCat("tile{mi=", random.Below(12), "}"),
                  1000 + static_cast<int64_t>(random.Below(500)));
        if (random.Below(3) == 0) {
          result =
              Failed(result, static_cast<v1::Outcome>(2 + random.Below(13)));
        }
        if (random.Below(8) == 0) {
          result.mutable_spec()->set_kind(v1::TRIAL_KIND_DEFAULT);
        }
        const int64_t at = 1000 * job + ordinal;
        EXPECT_OK(log->Append({result}, at));
        if (random.Below(4) == 0) {
          // Refused for some: failed or disproved.
          Publication verdict = Verdict(result, 900);
          verdict.low_ns = 890;
          verdict.high_ns = 910;
          verdict.speedup = 1.1;
          verdict.job_id = job;
          (void)log->Publish(verdict, at);
        }
      }
    }
    return log;
  }

  TempDir dir_;
};

std::set<std::string> BestsOf(const TuningLog& log, bool imported) {
  std::set<std::string> bests;
  for (int i = 1; i <= 4; ++i) {
    BestKey key = KeyFor(Matmul(8 * i, 8, 8));
    key.imported = imported;
    auto best = *log.Best(key);
    if (!best) continue;
    std::string id = best->record.result.spec().trial_id();
    if (const auto colon = id.find(':'); colon != std::string::npos) {
      id = id.substr(colon + 1);
    }
    bests.insert(absl::StrCat(
        best->key.workload_key, " ", id, " ", best->confirmed, " ",
        best->time_ns, " ", best->low_ns, " ", best->samples, " ",
        best->default_ns, " ", best->speedup, " ", best->since_unix_ms));
  }
  return bests;
}

TEST_F(Exchange, AFreshLogThatImportsAnExportExportsTheSame) {
  const int cases = static_cast<int>(std::max(1.0, 3 * TestScale()));
  for (int seed = 0; seed < cases; ++seed) {
    const auto source = Planted(absl::StrCat("a", seed), seed);
    const auto copy = Open(absl::StrCat("b", seed));
    const auto exported = ExportOf(*source);
    EXPECT_EQ(exported.front().log().records(), 3 * 64);
    EXPECT_EQ(exported.back().end().entries(),
              static_cast<int64_t>(exported.size()) - 1);
    EXPECT_EQ(Comparable(ExportOf(*source)), Comparable(exported));

    const auto first = Tally(ImportInto(*copy, exported));
    EXPECT_EQ(first.count(kRefused), 0u);
    EXPECT_EQ(first.at(kKnown), 2);  // head and end
    EXPECT_EQ(Comparable(ExportOf(*copy)), Comparable(exported));
    EXPECT_EQ(BestsOf(*copy, true), BestsOf(*source, false));
    EXPECT_GE(BestsOf(*copy, true).size(), 3u);
    EXPECT_TRUE(BestsOf(*copy, false).empty());

    // Again, and back again: nothing new.
    const auto again = Tally(ImportInto(*copy, exported));
    EXPECT_EQ(again.at(kKnown), static_cast<int>(exported.size()));
    EXPECT_EQ(Tally(ImportInto(*source, exported)).at(kKnown),
              static_cast<int>(exported.size()));
    EXPECT_EQ(Tally(ImportInto(*source, ExportOf(*copy))).at(kKnown),
              static_cast<int>(exported.size()));
    EXPECT_EQ(*copy->RebuildBest(nullptr), 0);
    EXPECT_EQ(*source->RebuildBest(nullptr), 0);
    const auto check = copy->upkeep().Check(
        [](const LogFinding& found) {
          ADD_FAILURE() << found.where << ": " << found.what;
        },
        nullptr);
    ASSERT_OK(check);
    EXPECT_EQ(check->records, 3 * 64);
  }
}

TEST_F(Exchange, EvidenceOfAnotherLogChangesNothingOfOurOwn) {
  const auto theirs = Planted("theirs", 5);
  const auto ours = Planted("ours", 6);
  const auto before = BestsOf(*ours, false);
  const auto records_before = AllRecords(*ours, Matmul(8, 8, 8)).size();
  const auto tally = Tally(ImportInto(*ours, ExportOf(*theirs)));
  // The same trial ids, yet other trials.
  EXPECT_EQ(tally.count(kRefused), 0u);
  EXPECT_GE(tally.at(kAdded), 3 * 64);
  EXPECT_EQ(BestsOf(*ours, false), before);
  EXPECT_EQ(BestsOf(*ours, true), BestsOf(*theirs, false));
  // They are records only for who asks for them.
  EXPECT_EQ(AllRecords(*ours, Matmul(8, 8, 8)).size(), records_before);
  RecordFilter filter{.workload_key = Matmul(8, 8, 8).key, .imported = true};
  size_t all = 0;
  ASSERT_OK(ours->ForEachRecord(filter, [&](const StoredRecord& record) {
    ++all;
    if (absl::StrContains(record.result.spec().trial_id(), ":")) {
      EXPECT_EQ(record.result.provenance(), "import:lab-b");
    } else {
      EXPECT_EQ(record.result.provenance(), "agent");
    }
    return true;
  }));
  EXPECT_GT(all, records_before);
  // A visit of all best rows tells them from our own.
  size_t imported = 0;
  ASSERT_OK(ours->ForEachBest([&](const WorkloadInfo&, const BestKnown& best) {
    imported += best.key.imported;
    return true;
  }));
  EXPECT_EQ(imported, BestsOf(*ours, true).size());
  const auto check = ours->upkeep().Check(
      [](const LogFinding& found) {
        ADD_FAILURE() << found.where << ": " << found.what;
      },
      nullptr);
  ASSERT_OK(check);
  EXPECT_EQ(check->records, 6 * 64);
}

TEST_F(Exchange, WhatMakesNoSenseIsRefusedAndTheRestIsTaken) {
  const auto log = Open("log");
  v1::LogEntry good;
  *good.mutable_record()->mutable_result() =
      Trial(1, 5, Matmul(8, 8, 8), "tile{mi=8}", 1000);
  v1::TrialSpec& spec =
      *good.mutable_record()->mutable_result()->mutable_spec();
  spec.set_trial_id("feed:1/0/5");
  const auto bent = [&](const std::function<void(v1::TrialResult&)>& bend) {
    v1::LogEntry entry = good;
    bend(*entry.mutable_record()->mutable_result());
    return entry;
  };
  const std::vector<std::pair<v1::LogEntry, std::string>> cases = {
      {bent([](auto& r) { r.mutable_spec()->set_trial_id("1/0/5"); }),
       "not of the form LOGID:JOB/TASK/ORDINAL"},
      {bent([](auto& r) { r.mutable_spec()->set_trial_id("a b:1/0/5"); }),
       "not of the form"},
      {bent([](auto& r) { r.mutable_spec()->set_trial_id("feed:1/0/6"); }),
       "its job, task and ordinal say 1/0/5"},
      {bent([&](auto& r) {
         r.mutable_spec()->set_trial_id(log->LogId() + ":1/0/5");
       }),
       "of this very log, which does not have it"},
      {bent([](auto& r) { r.mutable_spec()->set_workload_key("poison"); }),
       "'poison' is not that of the workload's text"},
      {bent([](auto& r) { r.mutable_spec()->set_workload("rm -rf"); }),
       "cannot be read: no matmul"},
      {bent([](auto& r) { r.set_outcome(v1::OUTCOME_UNSPECIFIED); }),
       "no known outcome"},
      {bent([](auto& r) { r.set_time_ns(-1); }), "negative time"},
      {bent([](auto& r) { r.set_time_ns(500); }),
       "time_ns is 500, the median of its blocks 1000"},
      {bent([](auto& r) { r.set_device_class("zen4-\x1b[2J"); }),
       "device_class holds control characters"},
      {bent([](auto& r) {
         r.mutable_spec()->mutable_schedule()->set_text("tile{\n}");
       }),
       "schedule holds control characters"},
      {bent([](auto& r) { r.set_max_error(std::nan("")); }),
       "max_error is nan, not a finite number"},
      {bent([](auto& r) {
         r.mutable_environment()->add_sensors()->set_after(HUGE_VAL);
       }),
       "a sensor's reading is inf"},
      {bent([](auto& r) { r.mutable_spec()->set_target("abacus"); }),
       "no such target"},
      {bent([](auto& r) { r.mutable_spec()->clear_policy(); }), "0 threads"},
      {v1::LogEntry(), "the entry is empty"},
  };
  std::vector<v1::LogEntry> entries;
  for (const auto& [entry, reason] : cases) entries.push_back(entry);
  entries.push_back(good);
  const auto verdicts = ImportInto(*log, entries);
  ASSERT_EQ(verdicts.size(), cases.size() + 1);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(verdicts[i].status(), kRefused) << cases[i].second;
    EXPECT_THAT(verdicts[i].reason(), HasSubstr(cases[i].second));
  }
  EXPECT_EQ(verdicts.back().status(), kAdded);
  EXPECT_EQ(*log->CountRecords(), 1);

  v1::LogEntry verdict;
  v1::LoggedPublication& publication = *verdict.mutable_publication();
  publication.set_trial_id("feed:1/0/6");
  publication.set_workload_key(Matmul(8, 8, 8).key);
  publication.set_device_class("zen4-2c");
  publication.mutable_policy()->set_threads(1);
  publication.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  publication.set_time_ns(900);
  EXPECT_THAT(ImportInto(*log, {verdict})[0].reason(),
              HasSubstr("no such trial"));
  publication.set_trial_id("feed:1/0/5");
  publication.set_speedup(-1);
  EXPECT_THAT(ImportInto(*log, {verdict})[0].reason(), HasSubstr("speedup"));
  publication.set_speedup(1.5);
  publication.set_speedup_low(1.6);
  publication.set_speedup_high(1.7);
  EXPECT_THAT(ImportInto(*log, {verdict})[0].reason(),
              HasSubstr("speedup is 1.5, outside 1.6 to 1.7"));
  publication.set_speedup_high(HUGE_VAL);
  EXPECT_THAT(ImportInto(*log, {verdict})[0].reason(),
              HasSubstr("speedup_high is inf"));
  publication.clear_speedup_low();
  publication.clear_speedup_high();
  EXPECT_EQ(ImportInto(*log, {verdict})[0].status(), kAdded);
  EXPECT_EQ(ImportInto(*log, {verdict})[0].status(), kKnown);
  std::vector<const v1::LogEntry*> none;
  EXPECT_STATUS(log->exchange().Import(none, {"", Describe, {}}),
                kInvalidArgument, "name of an import");
}

TEST_F(Exchange, TwoLogsThatGoOnFromACopyDoNotTakeOneAnothersTrials) {
  auto ours = Planted("ours", 7);
  const std::string copy = dir_.path() + "/copy";
  ASSERT_OK(ours->upkeep().Backup(copy, nullptr));
  auto theirs = Open("copy");
  ASSERT_EQ(theirs->LogId(), ours->LogId());
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(ours->Append({Trial(3, 64, workload, "tile{mi=1}", 700)}, 1));
  ASSERT_OK(theirs->Append({Trial(3, 64, workload, "tile{mi=2}", 500)}, 1));
  const auto entries = ExportOf(*theirs);
  const auto before = Comparable(ExportOf(*ours));
  const auto expect_one_refusal = [&](TuningLog& log) {
    const auto verdicts = ImportInto(log, entries, "other-lab");
    ASSERT_EQ(verdicts.size(), entries.size());
    int refused = 0;
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].status() != kRefused) continue;
      ++refused;
      EXPECT_THAT(entries[i].record().result().spec().trial_id(),
                  HasSubstr(":3/0/64"));
      EXPECT_THAT(verdicts[i].reason(), HasSubstr("with another result"));
    }
    EXPECT_EQ(refused, 1);
  };
  expect_one_refusal(*ours);
  EXPECT_EQ(Comparable(ExportOf(*ours)), before);
  // The same in a third log, which has what ours says.
  auto third = Open("third");
  ImportInto(*third, ExportOf(*ours));
  expect_one_refusal(*third);
}

// Both logs gave their next job the same number, and both judged one trial.
TEST_F(Exchange, JobsAndVerdictsThatDifferUnderOneNameAreConflicts) {
  auto ours = Planted("ours", 9);
  const WorkloadInfo workload = Matmul(8, 8, 8);
  const v1::TrialResult trial = Trial(3, 64, workload, "tile{mi=1}", 100);
  ASSERT_OK(ours->Append({trial}, 1));
  ASSERT_OK(ours->upkeep().Backup(dir_.path() + "/copy", nullptr));
  auto theirs = Open("copy");
  const auto go_on = [&](TuningLog& log, const std::string& name,
                         int64_t time_ns) {
    v1::SubmitJobRequest request;
    request.set_name(name);
    EXPECT_EQ(*log.CreateJob(request, 500), 4);
    EXPECT_OK(log.Publish(Verdict(trial, time_ns), 600));
  };
  go_on(*ours, "one", 90);
  go_on(*theirs, "two", 80);
  const auto entries = ExportOf(*theirs);
  const auto before = Comparable(ExportOf(*ours));
  const auto conflicts = [&](TuningLog& log,
                             const std::vector<v1::LogEntry>& some) {
    std::vector<std::string> reasons;
    for (const auto& verdict : ImportInto(log, some, "other-lab")) {
      if (verdict.status() == kRefused) reasons.push_back(verdict.reason());
    }
    return reasons;
  };
  EXPECT_THAT(
      conflicts(*ours, entries),
      ElementsAre(HasSubstr("job 4 is in this log with another request"),
                  HasSubstr("the publication of trial 3/0/64 is in this log "
                            "with another verdict")));
  EXPECT_EQ(Comparable(ExportOf(*ours)), before);
  // The same in a third log, which has what ours says.
  auto third = Open("third");
  EXPECT_THAT(conflicts(*third, ExportOf(*ours)), ElementsAre());
  const auto third_before = Comparable(ExportOf(*third));
  const std::string id = ours->LogId();
  EXPECT_THAT(conflicts(*third, entries),
              ElementsAre(HasSubstr("job " + id + ":4 is in this log with"),
                          HasSubstr("the publication of trial " + id +
                                    ":3/0/64 is in this log with another")));
  EXPECT_EQ(Comparable(ExportOf(*third)), third_before);

  // A verdict that this very log never gave is not taken for its own.
  auto bare = Planted("bare", 10);
  ASSERT_OK(bare->Append({trial}, 1));
  v1::LogEntry claim;
  v1::LoggedPublication& publication = *claim.mutable_publication();
  publication.set_trial_id(bare->LogId() + ":3/0/64");
  publication.set_workload_key(workload.key);
  publication.set_device_class("zen4-2c");
  publication.mutable_policy()->set_threads(1);
  publication.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  publication.set_time_ns(90);
  EXPECT_THAT(conflicts(*bare, {claim}),
              ElementsAre(HasSubstr("of this very log, which does not have")));
}

// Damage, export, restore, import: what came after the backup is evidence.
TEST_F(Exchange, WhatARestoreLostComesBackAsEvidence) {
  auto log = Planted("log", 11);
  const std::string path = dir_.path() + "/log";
  const std::string backup = dir_.path() + "/backup";
  ASSERT_OK(log->upkeep().Backup(backup, nullptr));
  const WorkloadInfo later = Matmul(64, 8, 8);
  ASSERT_OK(log->PutWorkload(later));
  ASSERT_EQ(*log->CreateJob({}, 500), 4);
  ASSERT_OK(log->ReserveOrdinals(4, 0, 1));
  ASSERT_OK(log->ReserveOrdinals(3, 0, 1));
  const auto best = Trial(4, 0, later, "tile{mi=5}", 70);
  ASSERT_OK(log->Append({best, Trial(3, 64, later, "tile{mi=6}", 80)}, 600));
  ASSERT_OK(log->Publish(Verdict(best, 70), 601));
  const auto saved = ExportOf(*log);
  log.reset();
  sqlite::RestoreOptions force;
  force.replace = true;
  ASSERT_OK(sqlite::RestoreLog(backup, path, force));
  log = Open("log");
  const auto own = BestsOf(*log, false);
  const auto tally = Tally(ImportInto(*log, saved, "saved"));
  EXPECT_EQ(tally.count(kRefused), 0u);
  EXPECT_EQ(tally.at(kAdded),
            1 + 1 + 2 + 1);  // workload, job, records, verdict
  EXPECT_EQ(Tally(ImportInto(*log, saved, "saved")).count(kAdded), 0u);
  EXPECT_EQ(*log->CountRecords(), 3 * 64 + 2);
  // No own answer, and no record of the jobs that go on.
  EXPECT_EQ(BestsOf(*log, false), own);
  EXPECT_TRUE(AllRecords(*log, later).empty());
  EXPECT_FALSE((*log->Best(KeyFor(later))).has_value());
  BestKey key = KeyFor(later);
  key.imported = true;
  const auto evidence = *log->Best(key);
  ASSERT_TRUE(evidence.has_value());
  EXPECT_EQ(evidence->time_ns, 70);
  EXPECT_EQ(evidence->record.result.spec().trial_id(), log->LogId() + ":4/0/0");
  EXPECT_EQ(evidence->record.result.provenance(), "import:saved");
  // What no restore can have lost is refused still.
  v1::LogEntry never;
  *never.mutable_record()->mutable_result() =
      Trial(10'004, 0, later, "tile{mi=5}", 60);
  never.mutable_record()->mutable_result()->mutable_spec()->set_trial_id(
      log->LogId() + ":10004/0/0");
  EXPECT_THAT(ImportInto(*log, {never})[0].reason(),
              HasSubstr("of this very log, which does not have it"));
  const auto check = log->upkeep().Check(
      [](const LogFinding& found) {
        ADD_FAILURE() << found.where << ": " << found.what;
      },
      nullptr);
  EXPECT_OK(check);
}

TEST_F(Exchange, ADatabaseThatCannotBeWrittenIsNoBadLine) {
  const auto entries = ExportOf(*Planted("source", 8));
  FaultVfs vfs;
  const auto log = Open("log");
  FaultVfs::Arm({.action = FaultAction::kFailWrites, .code = SQLITE_READONLY});
  std::vector<const v1::LogEntry*> pointers;
  for (const auto& entry : entries) pointers.push_back(&entry);
  const auto verdicts =
      log->exchange().Import(pointers, {.name = "lab", .describe = Describe});
  FaultVfs::Disarm();
  EXPECT_EQ(verdicts.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*log->CountRecords(), 0);
}

}  // namespace
}  // namespace regatta::testing

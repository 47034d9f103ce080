// A backup takes a log's place: whole, or not at all.
#include "storage/sqlite/restore.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/random.h"
#include "tests/storage/fault_vfs.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;
using sqlite::Restored;
using sqlite::RestoreLog;
using sqlite::RestoreOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Restore : public ::testing::Test {
 protected:
  Restore()
      : backup_(dir_.path() + "/backup"), log_(dir_.path() + "/in/tuning.db") {
    fs::create_directory(dir_.path() + "/in");
  }

  v1::TrialResult Trial(int64_t job, int ordinal) {
    auto result = OkResult(absl::StrCat(job, "/0/", ordinal), workload_,
                           absl::StrCat("s", ordinal), 1000 + ordinal);
    result.mutable_spec()->set_job_id(job);
    result.mutable_spec()->set_ordinal(ordinal);
    return result;
  }

  // A log of one job with `records` records.
  void MakeLog(const std::string& path, int records) {
    const auto log = *OpenTuningLog(path);
    EXPECT_OK(log->PutWorkload(workload_));
    EXPECT_OK(log->CreateJob({}, 1));
    EXPECT_OK(log->ReserveOrdinals(1, 0, records));
    for (int i = 0; i < records; ++i) {
      EXPECT_OK(log->Append({Trial(1, i)}, i));
    }
  }

  static RestoreOptions Force() {
    RestoreOptions options;
    options.replace = true;
    return options;
  }

  static int64_t RecordsOf(const std::string& path) {
    const auto log = OpenTuningLog(path, {.create = false, .read_only = true});
    EXPECT_OK(log);
    return log.ok() ? *(*log)->CountRecords() : -1;
  }

  // Every file below the folder, with a digest of its bytes.
  std::map<std::string, std::string> Files() {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      if (entry.is_regular_file()) {
        files[entry.path().string()] = Sha256Hex(ReadFile(entry.path()));
      }
    }
    return files;
  }

  void ExpectRefused(const RestoreOptions& options, absl::StatusCode code,
                     const std::string& text) {
    const auto before = Files();
    const auto refused = RestoreLog(backup_, log_, options);
    EXPECT_EQ(refused.status().code(), code) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(text));
    EXPECT_EQ(Files(), before) << "something changed";
  }

  TempDir dir_;
  const std::string backup_, log_;
  const WorkloadInfo workload_ = Matmul(8, 8, 8);
};

TEST_F(Restore, ABackupBecomesTheLogAndIsLeftAsItIs) {
  MakeLog(backup_, 20);
  fs::remove(backup_ + ".lock");
  const std::string bytes = ReadFile(backup_);
  std::string id;
  { id = (*OpenTuningLog(backup_, {.read_only = true}))->LogId(); }
  const auto restored = RestoreLog(backup_, log_, {});
  ASSERT_OK(restored);
  EXPECT_EQ(restored->records, 20);
  EXPECT_EQ(restored->jobs, 1);
  EXPECT_EQ(restored->bytes, static_cast<int64_t>(fs::file_size(log_)));
  EXPECT_EQ(ReadFile(backup_), bytes);
  EXPECT_EQ(Files().size(), 2u) << "something was left behind";
  const auto log = *OpenTuningLog(log_);
  EXPECT_EQ(log->LogId(), id);
  EXPECT_EQ(*log->CountRecords(), 20);
  EXPECT_EQ(TrialIds(AllRecords(*log, workload_)).front(), "1/0/0");
}

// What was handed out after the backup comes home under its own name.
TEST_F(Restore, NumbersHandedOutSinceAreNotHandedOutAgain) {
  MakeLog(backup_, 20);
  fs::copy_file(backup_, log_);
  {
    const auto lost = *OpenTuningLog(log_);
    EXPECT_EQ(*lost->ReserveOrdinals(1, 0, 5), 20);
    EXPECT_EQ(*lost->ReserveOrdinals(1, 1, 5), 0);  // none in the backup
    EXPECT_EQ(*lost->CreateJob({}, 2), 2);
  }
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  {
    const auto log = *OpenTuningLog(log_);
    EXPECT_EQ(*log->ReserveOrdinals(1, 0, 3), 1'000'020);
    EXPECT_EQ(*log->ReserveOrdinals(1, 0, 3), 1'000'023);
    EXPECT_EQ(*log->ReserveOrdinals(1, 1, 3), 1'000'000);
    EXPECT_EQ(*log->ReserveOrdinals(1, 1, 3), 1'000'003);
    EXPECT_EQ(*log->CreateJob({}, 3), 10'002);
    EXPECT_EQ(*log->CreateJob({}, 3), 10'003);
    // New jobs count from the beginning.
    EXPECT_EQ(*log->ReserveOrdinals(10'002, 0, 3), 0);
    // A result of the lost time is a record like others.
    EXPECT_THAT(*log->Append({Trial(1, 22)}, 5),
                ElementsAre(AppendStatus::kStored));
    int findings = 0;
    ASSERT_OK(
        log->upkeep().Check([&](const LogFinding&) { ++findings; }, nullptr));
    EXPECT_EQ(findings, 0);
  }
  // The same of a log that was restored before.
  fs::remove(backup_);
  fs::copy_file(log_, backup_);
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  const auto log = *OpenTuningLog(log_);
  EXPECT_EQ(*log->ReserveOrdinals(1, 0, 3), 2'000'026);
  EXPECT_EQ(*log->ReserveOrdinals(1, 2, 3), 2'000'000);
  EXPECT_EQ(*log->ReserveOrdinals(10'002, 0, 3), 1'000'003);
  EXPECT_EQ(*log->CreateJob({}, 4), 20'004);
}

TEST_F(Restore, OnlyAFlagReplacesALogThatHoldsSomething) {
  MakeLog(backup_, 5);
  MakeLog(log_, 7);
  ExpectRefused({}, absl::StatusCode::kFailedPrecondition,
                "holds 7 record(s) and 1 job(s); --force");
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  EXPECT_EQ(RecordsOf(log_), 5);
  // Twice is as once.
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  EXPECT_EQ(RecordsOf(log_), 5);
}

TEST_F(Restore, ALogThatHoldsNothingYetIsReplaced) {
  MakeLog(backup_, 5);
  { const auto fresh = *OpenTuningLog(log_); }
  ASSERT_OK(RestoreLog(backup_, log_, {}));
  EXPECT_EQ(RecordsOf(log_), 5);
  fs::remove(log_);
  WriteFile(log_, "");
  ASSERT_OK(RestoreLog(backup_, log_, {}));
  EXPECT_EQ(RecordsOf(log_), 5);
}

TEST_F(Restore, WhatIsNoLogIsReplacedByTheFlagAlone) {
  MakeLog(backup_, 5);
  WriteFile(log_, std::string(9000, 'z'));
  ExpectRefused({}, absl::StatusCode::kFailedPrecondition,
                "no tuning log, or a damaged one; --force");
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  EXPECT_EQ(RecordsOf(log_), 5);
  fs::remove(log_);
  WriteFile(log_ + "-wal", "acknowledged work");
  ExpectRefused({}, absl::StatusCode::kFailedPrecondition, "--force");
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  EXPECT_FALSE(fs::exists(log_ + "-wal"));
  EXPECT_EQ(RecordsOf(log_), 5);
}

TEST_F(Restore, ALogThatIsHeldIsRefusedWithItsHolder) {
  MakeLog(backup_, 5);
  const auto held = *OpenTuningLog(log_, {.holder = "a server at x:1"});
  for (const bool force : {false, true}) {
    RestoreOptions options;
    options.replace = force;
    const auto refused = RestoreLog(backup_, log_, options);
    EXPECT_STATUS(refused, kFailedPrecondition, "a server at x:1");
  }
  // By another name, too.
  const std::string link = dir_.path() + "/in/link.db";
  fs::create_hard_link(log_, link);
  EXPECT_STATUS(RestoreLog(backup_, link, Force()), kFailedPrecondition,
                "another name");
  fs::remove(link);
  fs::create_symlink(log_, link);
  EXPECT_STATUS(RestoreLog(backup_, link, Force()), kFailedPrecondition,
                "a server at x:1");
  EXPECT_EQ(*held->CountRecords(), 0);
  EXPECT_FALSE(fs::exists(log_ + ".restore"));
}

TEST_F(Restore, ABackupThatIsInUseOrTheLogItselfIsRefused) {
  MakeLog(log_, 5);
  fs::create_symlink(log_, backup_);
  EXPECT_STATUS(RestoreLog(backup_, log_, Force()), kFailedPrecondition,
                "the log itself");
  EXPECT_STATUS(RestoreLog(log_, dir_.path() + "/in/../in/tuning.db", Force()),
                kFailedPrecondition, "the log itself");
  fs::remove(backup_);
  const auto in_use = *OpenTuningLog(backup_, {.holder = "the other server"});
  EXPECT_STATUS(RestoreLog(backup_, log_, Force()), kFailedPrecondition,
                "the other server");
  EXPECT_EQ(RecordsOf(log_), 5);
}

TEST_F(Restore, WhatIsNoBackupIsRefused) {
  MakeLog(log_, 5);
  fs::remove(log_ + ".lock");
  ExpectRefused(Force(), absl::StatusCode::kNotFound, "no such backup");
  EXPECT_STATUS(RestoreLog(dir_.path() + "/no/such", log_, Force()), kNotFound,
                "no such folder");
  EXPECT_STATUS(RestoreLog(backup_, dir_.path() + "/no/such", Force()),
                kNotFound, "no such folder");
  EXPECT_STATUS(RestoreLog(dir_.path(), log_, Force()), kInvalidArgument,
                "folder");
  WriteFile(backup_, "");
  ExpectRefused(Force(), absl::StatusCode::kNotFound, "is empty");
  WriteFile(backup_, std::string(100'000, 'q'));
  ExpectRefused(Force(), absl::StatusCode::kDataLoss, "not a tuning log");
  fs::remove(backup_);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(backup_.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "CREATE TABLE other(x)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto refused = RestoreLog(backup_, log_, Force());
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(RecordsOf(log_), 5);
}

TEST_F(Restore, AnyCutAndWhatAnyByteMayDoLeavesTheLogAlone) {
  MakeLog(backup_, 40);
  fs::remove(backup_ + ".lock");
  MakeLog(log_, 5);
  fs::remove(log_ + ".lock");
  const std::string whole = ReadFile(backup_);
  const std::string before = ReadFile(log_);
  const int rounds = Scaled(40);
  Random random(2024);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = whole;
    const bool cut = i % 2 == 0;
    if (cut) {
      bytes.resize(1 + random.Below(whole.size() - 1));
    } else {
      // A page of other bytes.
      const size_t at = random.Below(whole.size() / 4096) * 4096;
      for (size_t j = at; j < at + 4096; ++j) {
        bytes[j] = static_cast<char>(random.Below(256));
      }
    }
    WriteFile(backup_, bytes);
    int findings = 0;
    RestoreOptions options = Force();
    options.finding = [&](const LogFinding&) { ++findings; };
    const auto restored = RestoreLog(backup_, log_, options);
    EXPECT_EQ(ReadFile(backup_), bytes);
    if (restored.ok()) {
      // Such a page was free: nothing of the log was in it.
      EXPECT_FALSE(cut);
      EXPECT_EQ(restored->records, 40);
      WriteFile(log_, before);
      continue;
    }
    ++refused;
    EXPECT_EQ(ReadFile(log_), before) << restored.status();
  }
  EXPECT_GT(refused, rounds * 3 / 4);
  EXPECT_EQ(RecordsOf(log_), 5);
}

// A record that does not match its key passes SQLite's own check.
TEST_F(Restore, EveryRecordIsRead) {
  MakeLog(backup_, 40);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(backup_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE record SET time_ns = 1 WHERE id = 17",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  std::vector<std::string> findings;
  RestoreOptions options;
  options.finding = [&](const LogFinding& found) {
    findings.push_back(found.where);
  };
  EXPECT_STATUS(RestoreLog(backup_, log_, options), kDataLoss,
                "is not whole: ");
  EXPECT_FALSE(findings.empty());
  EXPECT_FALSE(fs::exists(log_));
}

TEST_F(Restore, RecordsInWriteAheadLogsAreTakenOrGo) {
  // Both as killed processes leave them.
  const auto killed = [&](const std::string& path, int records) {
    const std::string live = dir_.path() + "/live";
    auto log = *OpenTuningLog(live);
    EXPECT_OK(log->PutWorkload(workload_));
    EXPECT_OK(log->CreateJob({}, 1));
    EXPECT_OK(log->ReserveOrdinals(1, 0, records));
    for (int i = 0; i < records; ++i) EXPECT_OK(log->Append({Trial(1, i)}, i));
    for (const char* suffix : {"", "-wal"}) {
      fs::copy_file(live + suffix, path + suffix);
    }
    EXPECT_GT(fs::file_size(path + "-wal"), 0u);
    log.reset();
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
      fs::remove(live + suffix);
    }
  };
  killed(backup_, 9);
  killed(log_, 4);
  EXPECT_STATUS(RestoreLog(backup_, log_, {}), kFailedPrecondition,
                "holds 4 record(s)");
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  EXPECT_FALSE(fs::exists(log_ + "-wal"));
  EXPECT_EQ(RecordsOf(log_), 9);
  EXPECT_EQ(RecordsOf(backup_), 9);
}

TEST_F(Restore, TheModeStaysAndProgressCanStopIt) {
  MakeLog(backup_, 5);
  MakeLog(log_, 7);
  ASSERT_EQ(chmod(log_.c_str(), 0640), 0);
  RestoreOptions stopped = Force();
  stopped.progress = [](const std::string&, int64_t, int64_t) { return false; };
  ExpectRefused(stopped, absl::StatusCode::kCancelled, "stopped");
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  EXPECT_EQ(fs::status(log_).permissions() & fs::perms::mask, fs::perms(0640));
}

// Killed at its Nth write, sync, truncation, removal or opening of a file.
TEST_F(Restore, KilledAnywhereItLeavesTheOldLogOrTheNewOne) {
  MakeLog(backup_, 30);
  MakeLog(log_, 7);
  const std::string backup = ReadFile(backup_), old_log = ReadFile(log_);
  int old_ones = 0, ended = 0;
  for (int64_t nth = 1; ended == 0; nth += 1 + nth / 12) {
    WriteFile(log_, old_log);
    const pid_t child = fork();
    if (child == 0) {
      const FaultVfs vfs;
      FaultVfs::Arm({.action = FaultAction::kKill, .nth = nth});
      _exit(RestoreLog(backup_, log_, Force()).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      ++ended;
    } else {
      ASSERT_EQ(WTERMSIG(status), SIGKILL);
    }
    const int64_t records = RecordsOf(log_);
    EXPECT_TRUE(records == 7 || records == 30) << records;
    old_ones += records == 7;
    EXPECT_EQ(ReadFile(backup_), backup);
    ASSERT_LT(nth, 10'000);
  }
  EXPECT_GT(old_ones, 3);
  EXPECT_EQ(RecordsOf(log_), 30);
  // What killed ones left is gone after one that ends.
  ASSERT_OK(RestoreLog(backup_, log_, Force()));
  for (const auto& [path, digest] : Files()) {
    EXPECT_FALSE(absl::StrContains(path, ".restore")) << path;
  }
}

}  // namespace
}  // namespace regatta::testing

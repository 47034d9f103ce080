// Opening: who may, and what is refused without a change.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "storage/sqlite/check_log.h"
#include "storage/sqlite/log_file.h"
#include "storage/sqlite/log_place.h"
#include "storage/sqlite/migrations.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Names and contents of a folder's files.
std::map<std::string, std::string> Snapshot(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] =
        entry.is_regular_file() ? ReadFile(entry.path().string()) : "";
  }
  return files;
}

class SqliteOpen : public ::testing::Test {
 protected:
  std::unique_ptr<TuningLog> Open(const OpenOptions& options = {}) {
    auto log = OpenTuningLog(path_, options);
    EXPECT_OK(log);
    return log.ok() ? *std::move(log) : nullptr;
  }

  // A closed log with some records, without its lock file.
  void MakeLog(int records) {
    {
      auto log = Open();
      ASSERT_OK(log->PutWorkload(workload_));
      std::vector<v1::TrialResult> results;
      for (int i = 0; i < records; ++i) {
        results.push_back(OkResult(absl::StrCat("1/0/", i), workload_,
                                   absl::StrCat("s", i), 1000 + i));
      }
      ASSERT_OK(log->Append(results, 1));
    }
    std::filesystem::remove(path_ + ".lock");
    ASSERT_FALSE(std::filesystem::exists(path_ + "-wal"));
  }

  // Both ways of opening refuse and change nothing.
  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const auto before = Snapshot(dir_.path());
    for (const bool read_only : {false, true}) {
      const auto log = OpenTuningLog(path_, {.read_only = read_only});
      ASSERT_EQ(log.status().code(), code)
          << "read_only " << read_only << ": " << log.status().ToString();
      EXPECT_THAT(std::string(log.status().message()), HasSubstr(text));
      EXPECT_THAT(std::string(log.status().message()), HasSubstr(path_));
      EXPECT_TRUE(Snapshot(dir_.path()) == before)
          << "files were changed, read_only " << read_only;
    }
  }

  const WorkloadInfo workload_ = Matmul(8, 8, 8);
  TempDir dir_;
  const std::string path_ = dir_.path() + "/tuning.log";
};

TEST_F(SqliteOpen, TakesAPathWithAndWithoutScheme) {
  const std::string id = Open()->LogId();
  EXPECT_EQ(OpenTuningLog("sqlite:" + path_).value()->LogId(), id);
  EXPECT_STATUS(OpenTuningLog("postgresql://lab/log"), kInvalidArgument,
                "known are sqlite:");
  EXPECT_STATUS(OpenTuningLog(""), kInvalidArgument, "empty");
}

TEST_F(SqliteOpen, TakesPathsWithCharactersThatUrisGiveAMeaning) {
  for (const std::string name : {"a?b", "a#b", "a%20b", "a b", "a'b\"", "ä"}) {
    const std::string path = dir_.path() + "/" + name;
    { ASSERT_OK(OpenTuningLog(path)); }
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
    EXPECT_OK(OpenTuningLog(path, {.read_only = true}));
  }
}

TEST_F(SqliteOpen, ASecondOpenerLearnsWhoHoldsTheLog) {
  const auto first = Open({.holder = "regatta-server at 127.0.0.1:4567"});
  for (const bool read_only : {false, true}) {
    const auto second = OpenTuningLog(path_, {.read_only = read_only});
    EXPECT_STATUS(second, kFailedPrecondition,
                  absl::StrCat("process ", getpid(),
                               " (regatta-server at 127.0.0.1:4567)"));
  }
  // Through another name too.
  std::filesystem::create_symlink(path_, dir_.path() + "/alias");
  EXPECT_STATUS(OpenTuningLog(dir_.path() + "/alias"), kFailedPrecondition,
                "127.0.0.1:4567");
}

TEST_F(SqliteOpen, AHardLinkDoesNotGetAroundTheLock) {
  MakeLog(1);
  const std::string link = dir_.path() + "/hard.log";
  std::filesystem::create_hard_link(path_, link);
  auto first = Open({.holder = "a server"});
  for (const bool read_only : {false, true}) {
    EXPECT_STATUS(OpenTuningLog(link, {.read_only = read_only}),
                  kFailedPrecondition, "another name (the file has 2 names)");
    EXPECT_FALSE(std::filesystem::exists(link + ".lock"));
  }
  // The one that holds it goes on.
  ASSERT_OK(first->Append({OkResult("2/0/0", workload_, "s", 900)}, 1));
  first.reset();
  // Readers do not exclude one another by either name, but a writer.
  first = Open({.read_only = true});
  EXPECT_EQ(*(*OpenTuningLog(link, {.read_only = true}))->CountRecords(), 2);
  EXPECT_STATUS(OpenTuningLog(link), kFailedPrecondition, "another name");
  first.reset();
  EXPECT_OK(OpenTuningLog(link));
}

TEST(DatabaseAt, KnowsALogAndWhatBelongsToOne) {
  const TempDir dir;
  const std::string path = dir.path() + "/t.db";
  ASSERT_OK(OpenTuningLog(path));
  EXPECT_EQ(sqlite::DatabaseAt(path), path);
  for (const char* suffix : {"-wal", "-shm", "-journal", ".lock"}) {
    EXPECT_EQ(sqlite::DatabaseAt(path + suffix), path);
  }
  WriteFile(dir.path() + "/text", "SQLite format 4");
  for (const char* name : {"", "/none", "/none-wal", "/text", "/text.lock"}) {
    EXPECT_EQ(sqlite::DatabaseAt(dir.path() + name), std::nullopt) << name;
  }
}

TEST_F(SqliteOpen, AWriteAheadLogThatNeedsAnIndexIsNamedWhereNoneCanBeMade) {
  const std::string folder = dir_.path() + "/closed";
  std::filesystem::create_directory(folder);
  {
    auto log = Open();
    ASSERT_OK(log->PutWorkload(workload_));
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(path_ + suffix, folder + "/log" + suffix);
      chmod((folder + "/log" + suffix).c_str(), 0644);
    }
  }
  ASSERT_GT(std::filesystem::file_size(folder + "/log-wal"), 0u);
  // Permissions do not bind root: be somebody else meanwhile.
  const bool root = geteuid() == 0;
  chmod(dir_.path().c_str(), 0755);
  chmod(folder.c_str(), 0555);
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  EXPECT_STATUS(OpenTuningLog(folder + "/log", {.read_only = true}),
                kFailedPrecondition, "copy ");
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  chmod(folder.c_str(), 0755);
  EXPECT_OK(OpenTuningLog(folder + "/log", {.read_only = true}));
}

TEST_F(SqliteOpen, ALogInAFolderThatCannotBeWrittenIsCopiedAllTheSame) {
  MakeLog(3);
  // Permissions do not bind root: be somebody else meanwhile.
  const bool root = geteuid() == 0;
  chmod(dir_.path().c_str(), 0555);
  chmod(path_.c_str(), 0644);
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  {
    const auto log = OpenTuningLog(path_, {.read_only = true});
    ASSERT_OK(log);
    size_t bytes = 0;
    EXPECT_OK((*log)->upkeep().StreamBackup(
        [&](std::string_view data) {
          bytes += data.size();
          return absl::OkStatus();
        },
        nullptr));
    EXPECT_EQ(bytes, std::filesystem::file_size(path_));
  }
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  chmod(dir_.path().c_str(), 0755);
}

TEST_F(SqliteOpen, ReadersShareAndKeepWritersOut) {
  { Open({.holder = "an earlier server"}); }
  const auto one = Open({.read_only = true});
  const auto two = Open({.read_only = true});
  EXPECT_STATUS(OpenTuningLog(path_), kFailedPrecondition, "read it");
  EXPECT_THAT(std::string(OpenTuningLog(path_).status().message()),
              ::testing::Not(HasSubstr("earlier")));
}

TEST_F(SqliteOpen, ReadersOfALogWithoutALockFileKeepWritersOut) {
  MakeLog(3);
  auto one = Open({.read_only = true});
  const auto two = Open({.read_only = true});
  EXPECT_STATUS(OpenTuningLog(path_), kFailedPrecondition, "read it");
  one.reset();  // it made the lock file; the other one holds it still
  EXPECT_STATUS(OpenTuningLog(path_), kFailedPrecondition, "read it");
}

TEST_F(SqliteOpen, APlaceThatIsHeldIsOpenedByNobody) {
  MakeLog(3);
  {
    const auto place = sqlite::LogPlace::Hold(path_);
    ASSERT_OK(place);
    EXPECT_EQ((*place)->Occupied(), path_);
    EXPECT_STATUS(OpenTuningLog(path_), kFailedPrecondition, "replacing it");
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".lock"));
  const auto log = Open({.holder = "a server"});
  EXPECT_STATUS(sqlite::LogPlace::Hold(path_), kFailedPrecondition, "a server");
  EXPECT_STATUS(sqlite::LogPlace::Hold(dir_.path()), kFailedPrecondition,
                "folder");
}

TEST_F(SqliteOpen, WhatAKilledServerLeftDoesNotComeOverTheLogThatReplacesIt) {
  // A log of two records as a killed process leaves it, and a closed one of 5.
  const std::string other = dir_.path() + "/other";
  {
    auto log = Open();
    ASSERT_OK(log->PutWorkload(workload_));
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(log->Append(
          {OkResult(absl::StrCat("1/0/", i), workload_, "s", 1000)}, 1));
    }
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(path_ + suffix, other + suffix);
    }
  }
  ASSERT_GT(std::filesystem::file_size(other + "-wal"), 0u);
  std::filesystem::remove_all(path_);
  MakeLog(5);
  const std::string fresh = ReadFile(path_);
  const std::string old_log = ReadFile(other);
  const std::string old_wal = ReadFile(other + "-wal");
  {
    const auto place = *sqlite::LogPlace::Hold(other);
    EXPECT_STATUS(place->Replace([] { return absl::UnknownError("no"); }),
                  kUnknown, "no");
    EXPECT_EQ(ReadFile(other), old_log);
    EXPECT_EQ(ReadFile(other + "-wal"), old_wal);
    ASSERT_OK(place->Replace([&] {
      std::filesystem::rename(path_, other);
      return absl::OkStatus();
    }));
    EXPECT_EQ(ReadFile(other), fresh);
  }
  EXPECT_EQ(Snapshot(dir_.path()).size(), 1u);
  EXPECT_EQ(*(*OpenTuningLog(other))->CountRecords(), 5);

  // A write-ahead log alone takes the place, too.
  std::filesystem::remove(other);
  WriteFile(other + "-wal", old_wal);
  EXPECT_EQ((*sqlite::LogPlace::Hold(other))->Occupied(), other + "-wal");
}

TEST_F(SqliteOpen, ReadOnlyNeitherCreatesNorWrites) {
  EXPECT_STATUS(OpenTuningLog(path_, {.read_only = true}), kNotFound, path_);
  EXPECT_STATUS(OpenTuningLog(path_, {.create = false}), kNotFound, path_);
  EXPECT_TRUE(Snapshot(dir_.path()).empty());
  MakeLog(3);
  const auto before = Snapshot(dir_.path());
  {
    const auto log = Open({.read_only = true});
    EXPECT_EQ(AllRecords(*log, workload_).size(), 3u);
    EXPECT_EQ((*log->Best(KeyFor(workload_)))->time_ns, 1000);
    EXPECT_STATUS(log->Append({}, 1), kFailedPrecondition, "read only");
    EXPECT_STATUS(log->PutWorkload(workload_), kFailedPrecondition, path_);
    EXPECT_STATUS(log->RebuildBest(nullptr), kFailedPrecondition, path_);
    auto during = Snapshot(dir_.path());
    EXPECT_EQ(during.erase("tuning.log.lock"), 1u);
    EXPECT_TRUE(during == before);
  }
  EXPECT_TRUE(Snapshot(dir_.path()) == before);
}

TEST_F(SqliteOpen, AnEmptyFileBecomesALogAndKeepsItsMode) {
  WriteFile(path_, "");
  chmod(path_.c_str(), 0600);
  EXPECT_STATUS(OpenTuningLog(path_, {.read_only = true}), kNotFound,
                path_ + ": is empty");
  Open();
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_GT(info.st_size, 0);
}

TEST_F(SqliteOpen, RefusesANewerVersionUntouched) {
  MakeLog(3);
  ASSERT_OK(
      sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWrite)
          .value()
          ->Execute("PRAGMA user_version = 99"));
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "version 99");
  ExpectRefused(absl::StatusCode::kFailedPrecondition,
                absl::StrCat("up to ", sqlite::Migrations().size()));
}

TEST_F(SqliteOpen, ADamagedJobIsListedAsSuchAndTheOthersAsTheyAre) {
  MakeLog(1);
  {
    auto log = Open();
    v1::SubmitJobRequest request;
    for (const char* name : {"one", "two", "three"}) {
      request.set_name(name);
      ASSERT_OK(log->CreateJob(request, 1));
    }
  }
  ASSERT_OK(
      sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWrite)
          .value()
          ->Execute("UPDATE job SET request = x'ffffffff' WHERE id = 2"));
  auto log = Open();
  const auto jobs = log->ListJobs();
  ASSERT_OK(jobs);
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].request.name(), "three");
  EXPECT_EQ((*jobs)[0].damage, "");
  EXPECT_EQ((*jobs)[1].job.job_id(), 2);
  EXPECT_THAT((*jobs)[1].damage, HasSubstr("damaged"));
  EXPECT_EQ((*jobs)[2].request.name(), "one");
  EXPECT_EQ(log->GetJob(2).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteOpen, RefusesTheDatabaseOfAnotherProgramUntouched) {
  ASSERT_OK(sqlite::Connection::Open(path_, sqlite::Connection::Mode::kCreate)
                .value()
                ->Execute("CREATE TABLE t(x); PRAGMA user_version = 1"));
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "another program");
}

TEST_F(SqliteOpen, RefusesWhatIsNoDatabaseUntouched) {
  MakeLog(3);
  const std::string good = ReadFile(path_);
  for (const std::string& bytes :
       {std::string("{\"records\": []}\n"), std::string(10000, '\0'),
        good.substr(0, 1), good.substr(0, 10), "x" + good.substr(1)}) {
    WriteFile(path_, bytes);
    ExpectRefused(absl::StatusCode::kDataLoss, "not a tuning log");
  }
}

TEST_F(SqliteOpen, RefusesATruncatedLogUntouched) {
  MakeLog(300);
  const std::string good = ReadFile(path_);
  ASSERT_GT(good.size(), 20u * 4096);
  for (const size_t size :
       {size_t{16}, size_t{50}, size_t{100}, size_t{512}, size_t{4095},
        size_t{4096}, good.size() / 2, good.size() - 4096, good.size() - 1}) {
    SCOPED_TRACE(absl::StrCat(size, " of ", good.size(), " bytes"));
    WriteFile(path_, good.substr(0, size));
    ExpectRefused(absl::StatusCode::kDataLoss, "corrupt");
  }
}

TEST_F(SqliteOpen, RefusesALogWithAPageOfGarbageUntouched) {
  MakeLog(300);
  const std::string good = ReadFile(path_);
  Random random(7);
  for (size_t page = 0; page < good.size() / 4096; ++page) {
    SCOPED_TRACE(absl::StrCat("page ", page + 1));
    std::string bad = good;
    // The first page keeps the words that say what it is.
    for (size_t i = page == 0 ? 100 : 0; i < 4096; ++i) {
      bad[page * 4096 + i] = static_cast<char>(random.Below(256));
    }
    WriteFile(path_, bad);
    ExpectRefused(absl::StatusCode::kDataLoss, "corrupt");
    std::fill_n(bad.begin() + page * 4096, 4096, '\0');
    if (page == 0) continue;  // no database at all
    WriteFile(path_, bad);
    ExpectRefused(absl::StatusCode::kDataLoss, "corrupt");
  }
  WriteFile(path_, good);
  EXPECT_EQ(Open()->CountRecords().value(), 300);
}

TEST_F(SqliteOpen, TheQuickerCheckOfALargeLogFindsDamageOfItsSmallTables) {
  MakeLog(300);
  const std::string good = ReadFile(path_);
  const auto check = [&]() -> absl::Status {
    const auto db =
        sqlite::Connection::Open(path_, sqlite::Connection::Mode::kImmutable);
    if (!db.ok()) return db.status();  // the page tells what tables there are
    return sqlite::CheckLog(**db, path_,
                            static_cast<int64_t>(sqlite::Migrations().size()),
                            /*full_check_bytes=*/0)
        .status();
  };
  EXPECT_OK(check());
  int found = 0;
  for (size_t page = 1; page < good.size() / 4096; ++page) {
    std::string bad = good;
    std::fill_n(bad.begin() + page * 4096, 4096, '\xee');
    WriteFile(path_, bad);
    const absl::Status status = check();
    EXPECT_THAT(status.code(),
                AnyOf(absl::StatusCode::kOk, absl::StatusCode::kDataLoss));
    found += !status.ok();
  }
  EXPECT_GT(found, 12);
}

TEST_F(SqliteOpen, RefusesAWriteAheadLogWithoutItsFile) {
  WriteFile(path_ + "-wal", "acknowledged work");
  ExpectRefused(absl::StatusCode::kDataLoss, "-wal");
}

TEST_F(SqliteOpen, NamesWhatIsWrongWithThePath) {
  EXPECT_STATUS(OpenTuningLog(dir_.path()), kInvalidArgument, "folder");
  EXPECT_STATUS(OpenTuningLog(dir_.path() + "/"), kInvalidArgument, "folder");
  EXPECT_STATUS(OpenTuningLog(dir_.path() + "/no/log"), kNotFound,
                dir_.path() + "/no");
  WriteFile(dir_.path() + "/plain", "x");
  EXPECT_FALSE(OpenTuningLog(dir_.path() + "/plain/log").ok());
  EXPECT_STATUS(OpenTuningLog("/dev/null"), kInvalidArgument, "regular");
  EXPECT_THAT(Snapshot(dir_.path()), ElementsAre(std::pair("plain", "x")));
}

TEST_F(SqliteOpen, NamesAPlaceWithoutPermission) {
  MakeLog(1);
  // Permissions do not bind root: be somebody else meanwhile.
  const bool root = geteuid() == 0;
  std::filesystem::create_directory(dir_.path() + "/closed");
  chmod(dir_.path().c_str(), 0755);
  chmod((dir_.path() + "/closed").c_str(), 0500);
  chmod(path_.c_str(), 0444);
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  EXPECT_STATUS(OpenTuningLog(dir_.path() + "/closed/log"), kPermissionDenied,
                dir_.path() + "/closed");
  EXPECT_STATUS(OpenTuningLog(path_), kPermissionDenied, path_);
  EXPECT_OK(OpenTuningLog(path_, {.read_only = true}));
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
    chmod(path_.c_str(), 0400);
    ASSERT_EQ(seteuid(65534), 0);
    EXPECT_STATUS(OpenTuningLog(path_, {.read_only = true}), kPermissionDenied,
                  path_);
    ASSERT_EQ(seteuid(0), 0);
  }
}

TEST(LogFile, KnowsNetworkFileSystems) {
  EXPECT_TRUE(sqlite::IsNetworkFileSystem(0x6969));      // NFS
  EXPECT_TRUE(sqlite::IsNetworkFileSystem(0x517B));      // SMB
  EXPECT_TRUE(sqlite::IsNetworkFileSystem(0xFF534D42));  // CIFS
  // As a signed 32-bit number, as some machines hand it out.
  EXPECT_TRUE(sqlite::IsNetworkFileSystem(static_cast<int32_t>(0xFE534D42)));
  EXPECT_FALSE(sqlite::IsNetworkFileSystem(0xEF53));      // ext4
  EXPECT_FALSE(sqlite::IsNetworkFileSystem(0x01021994));  // tmpfs
  EXPECT_FALSE(sqlite::IsNetworkFileSystem(0x794C7630));  // overlay
}

// Whatever the mask: they tell of a lab's kernels and people.
TEST_F(SqliteOpen, ANewLogIsItsOwnersAlone) {
  const auto mode = [](const std::string& file) {
    struct stat info = {};
    EXPECT_EQ(stat(file.c_str(), &info), 0) << file;
    return info.st_mode & 0777;
  };
  const mode_t mask = umask(0);
  auto log = Open();
  ASSERT_OK(log->PutWorkload(workload_));
  const std::string copy = path_ + ".copy";
  ASSERT_OK(log->upkeep().Backup(copy, nullptr));
  for (const char* suffix : {"", "-wal", "-shm", ".lock", ".copy"}) {
    EXPECT_EQ(mode(path_ + suffix), 0600u) << suffix;
  }
  // Opened to others, it stays so, with what belongs to it.
  log.reset();
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  ASSERT_EQ(unlink((path_ + ".lock").c_str()), 0);
  log = Open();
  ASSERT_OK(log->PutWorkload(Matmul(2, 2, 2)));
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    EXPECT_EQ(mode(path_ + suffix), 0640u) << suffix;
  }
  umask(mask);
}

}  // namespace
}  // namespace regatta::testing

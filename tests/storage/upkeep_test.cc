// Checks, copies and files that go away under an open log.
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "storage/sqlite/integrity.h"
#include "storage/sqlite/reader_pool.h"
#include "storage/sqlite/record_codec.h"
#include "storage/sqlite/scratch_place.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ScratchFolder, IsTheFirstWithRoomOrTellsWhatEachHas) {
  const std::map<std::string, int64_t> room = {
      {"/full", 0}, {"/small", 10 << 20}, {"/tmp", 30 << 20}, {"/closed", -1}};
  const auto choose = [&](const std::vector<std::string>& folders,
                          int64_t bytes) {
    return sqlite::ScratchFolder(
        folders, bytes,
        [&](const std::string& folder) { return room.at(folder); });
  };
  EXPECT_EQ(*choose({"/small", "/tmp"}, 10 << 20), "/small");
  EXPECT_EQ(*choose({"/small", "/tmp"}, (10 << 20) + 1), "/tmp");
  EXPECT_EQ(*choose({"/closed", "/tmp"}, 1), "/tmp");
  const auto none = choose({"/full", "/closed", "/small"}, 20 << 20);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("needs 21 MiB for a moment, and /full has 0 MiB, "
                        "/closed cannot be written to, /small has 10 MiB"));
  EXPECT_GT(sqlite::RoomIn("/tmp"), 0);
  EXPECT_LT(sqlite::RoomIn("/nowhere"), 0);
}

class Upkeep : public ::testing::Test {
 protected:
  Upkeep() : path_(dir_.path() + "/log") {
    log_ = *OpenTuningLog(path_);
    EXPECT_OK(log_->PutWorkload(workload_));
    EXPECT_OK(log_->CreateJob({}, 1));
    EXPECT_OK(log_->ReserveOrdinals(1, 0, 1000));
    for (int i = 0; i < 20; ++i) EXPECT_OK(log_->Append({Trial(i)}, i));
    EXPECT_OK(log_->Publish(Verdict(Trial(3), 900), 50));
  }

  v1::TrialResult Trial(int ordinal) {
    auto result =
        OkResult(absl::StrCat("1/0/", ordinal), workload_,
                 absl::StrCat("tile{mi=", ordinal, "}"), 1000 + ordinal);
    result.mutable_spec()->set_ordinal(ordinal);
    return result;
  }

  static std::vector<std::string> Findings(const TuningLog& log) {
    std::vector<std::string> findings;
    EXPECT_OK(log.upkeep().Check(
        [&](const LogFinding& found) {
          findings.push_back(absl::StrCat(found.where, ": ", found.what));
        },
        nullptr));
    return findings;
  }

  // Changes the closed file behind the log's back and checks it.
  std::vector<std::string> FindingsAfter(const std::string& sql) {
    log_.reset();
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_close(db);
    OpenOptions options;
    options.read_only = true;
    log_ = *OpenTuningLog(path_, options);
    return Findings(*log_);
  }

  TempDir dir_;
  std::string path_;
  const WorkloadInfo workload_ = Matmul(8, 8, 8);
  std::unique_ptr<TuningLog> log_;
};

TEST_F(Upkeep, AWholeLogHasNoFindings) {
  EXPECT_THAT(Findings(*log_), IsEmpty());
}

TEST_F(Upkeep, ProgressCanStopACheck) {
  EXPECT_STATUS(log_->upkeep().Check(
                    [](const LogFinding&) {},
                    [](const std::string&, int64_t, int64_t) { return false; }),
                kCancelled, "stopped");
}

TEST_F(Upkeep, ACheckCanBeStoppedInTheMiddleOfThePages) {
  std::vector<v1::TrialResult> batch;
  for (int i = 20; i < 1000; ++i) batch.push_back(Trial(i));
  ASSERT_OK(log_->Append(batch, 1));
  const auto db =
      sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly);
  ASSERT_OK(db);
  std::map<std::string, int> asked;
  const auto stop_after = [&](int calls) {
    asked.clear();
    return sqlite::CheckIntegrity(
               **db, [](const LogFinding&) {},
               [&asked, calls](const std::string& phase, int64_t, int64_t) {
                 return ++asked[phase] < calls;
               },
               absl::ZeroDuration())
        .status();
  };
  EXPECT_STATUS(stop_after(3), kCancelled, "the check was stopped");
  EXPECT_EQ(asked,
            (std::map<std::string, int>{{"checking the file's pages", 3}}));
  // The connection is as it was.
  EXPECT_OK(stop_after(1 << 30));
  EXPECT_GT(asked.at("checking the file's pages"), 10);
  EXPECT_GT(asked.at("reading records"), 10);
}

TEST_F(Upkeep, OnlyTheFirstFindingsAreToldAndAllAreCounted) {
  std::vector<v1::TrialResult> batch;
  for (int i = 20; i < 250; ++i) batch.push_back(Trial(i));
  ASSERT_OK(log_->Append(batch, 1));
  ASSERT_OK(log_->ReserveOrdinals(1, 0, 1000));
  EXPECT_EQ(FindingsAfter("UPDATE record SET time_ns = 1 WHERE id > 10").size(),
            static_cast<size_t>(LogUpkeep::kMaxFindings));
  const auto check = log_->upkeep().Check([](const LogFinding&) {}, nullptr);
  ASSERT_OK(check);
  EXPECT_EQ(check->records, 250);
  EXPECT_EQ(check->findings, 240);
}

#define EXPECT_FINDING(sql, text) \
  EXPECT_THAT(FindingsAfter(sql), Contains(HasSubstr(text)))

TEST_F(Upkeep, FindsABestKnownRowThatIsNotWhatTheRecordsSay) {
  EXPECT_FINDING(
      "UPDATE best_known SET record_id = 7, publication_id = NULL",
      "best-known of matmul-8-8-8 on zen4-2c, 1 thread(s): what is stored is "
      "not what the records say");
  log_.reset();
  log_ = *OpenTuningLog(path_);
  EXPECT_EQ(*log_->RebuildBest(nullptr), 1);
  EXPECT_EQ(*log_->RebuildBest(nullptr), 0);
  EXPECT_THAT(Findings(*log_), IsEmpty());
}
TEST_F(Upkeep, FindsAMissingBestKnownRow) {
  EXPECT_FINDING("DELETE FROM best_known", "not what the records say");
}
TEST_F(Upkeep, FindsARecordWithColumnsThatAreNotItsOwn) {
  EXPECT_FINDING("UPDATE record SET time_ns = 1 WHERE id = 5",
                 "record 5 (trial 1/0/4): its column time_ns is 1, its bytes "
                 "say 1004");
}
TEST_F(Upkeep, FindsARecordThatCannotBeRead) {
  EXPECT_FINDING("UPDATE record SET body = x'ff' WHERE id = 5",
                 "record 5 (trial 1/0/4): the record of trial 1/0/4 cannot be "
                 "read");
}
// Field 4, abandoned, at its default, which is left out.
TEST_F(Upkeep, FindsARecordWhoseBytesAreNotAsTheyAreWritten) {
  EXPECT_FINDING("UPDATE record SET body = body || x'2000' WHERE id = 5",
                 "record 5 (trial 1/0/4): its bytes are not as they are "
                 "written");
}
// As an older release stored it: the columns are those of its bytes.
TEST_F(Upkeep, ATimeThatIsNotThatOfItsBlocksIsAWarning) {
  auto result = Trial(30);
  result.mutable_blocks(0)->set_elapsed_ns(7);
  result.mutable_blocks(1)->set_elapsed_ns(8);
  EXPECT_STATUS(log_->Append({result}, 1), kInvalidArgument,
                "trial 1/0/30 has times that disagree: time_ns is 1030, the "
                "median of its blocks 0.8");
  result = Trial(4);
  result.set_time_ns(5000);
  const std::string body = absl::BytesToHexString(sqlite::Encode(result).body);
  EXPECT_THAT(
      FindingsAfter(absl::StrCat("UPDATE record SET time_ns = 5000, body = x'",
                                 body, "' WHERE id = 5")),
      ElementsAre("record 5 (trial 1/0/4): warning: trial 1/0/4 has times that "
                  "disagree: time_ns is 5000, the median of its blocks 1004; "
                  "the file is as it was written"));
  const auto check = log_->upkeep().Check(
      [](const LogFinding& found) {
        EXPECT_EQ(found.kind, FindingKind::kContent);
      },
      nullptr);
  ASSERT_OK(check);
  EXPECT_EQ(check->findings, 1);
  EXPECT_EQ(check->damage, 0);
}
TEST_F(Upkeep, AnOrdinalThatWasNeverHandedOutIsRefused) {
  EXPECT_STATUS(log_->Append({Trial(1000)}, 1), kInvalidArgument,
                "trial 1/0/1000 has ordinal 1000, but its task was handed out "
                "those below 1000");
  EXPECT_OK(log_->Append({Trial(999)}, 1));
}
TEST_F(Upkeep, FindsARecordUnderAnotherKey) {
  EXPECT_FINDING("UPDATE cell SET device_class = 'zen9-1c'",
                 "it stands under another key than its own");
}
TEST_F(Upkeep, FindsOrdinalsThatWouldBeHandedOutAgain) {
  EXPECT_FINDING("UPDATE ordinal SET next = 19",
                 "job 1, task 0: ordinal 19 would be handed out next, but a "
                 "record has ordinal 19");
}
TEST_F(Upkeep, FindsAMissingJob) {
  EXPECT_FINDING("DELETE FROM job", "its job 1 is missing");
}
TEST_F(Upkeep, FindsAPublicationWithoutItsRecord) {
  EXPECT_FINDING("UPDATE publication SET record_id = 999",
                 "publication 1: its record or workload is missing");
}
TEST_F(Upkeep, FindsABentContext) {
  EXPECT_FINDING("UPDATE context SET digest = x'00' WHERE id = 1",
                 "context 1: its bytes do not have its digest");
}

TEST_F(Upkeep, ACopyIsWholeWhileRecordsArrive) {
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 20; i < 100 && !done; ++i) {
      EXPECT_OK(log_->Append({Trial(i)}, i));
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::string copy = absl::StrCat(dir_.path(), "/copy", i);
    ASSERT_OK(log_->upkeep().Backup(copy, nullptr));
    const auto opened = OpenTuningLog(copy);
    ASSERT_OK(opened);
    EXPECT_EQ((*opened)->LogId(), log_->LogId());
    EXPECT_GE(*(*opened)->CountRecords(), 20);
    EXPECT_THAT(Findings(**opened), IsEmpty());
  }
  done = true;
  writer.join();
  EXPECT_FALSE(log_->upkeep().Backup(dir_.path() + "/copy0", nullptr).ok())
      << "it exists";
}

// More of them at once than there are connections for short reads.
TEST_F(Upkeep, ReadsThatTakeLongHoldUpNoOthers) {
  int visited = 0;
  const std::function<void(int)> read = [&](int more) {
    EXPECT_OK(log_->ForEachBest([&](const WorkloadInfo&, const BestKnown&) {
      ++visited;
      if (more > 0) {
        read(more - 1);
      } else {
        const TempDir dir;
        EXPECT_OK(log_->upkeep().Backup(dir.path() + "/copy", nullptr));
        EXPECT_TRUE((*log_->Best(KeyFor(workload_))).has_value());
      }
      return true;
    }));
  };
  read(sqlite::ReaderPool::kMaxConnections);
  EXPECT_EQ(visited, sqlite::ReaderPool::kMaxConnections + 1);
}

TEST_F(Upkeep, AStreamedCopyLeavesFilesOfOthersAndNoneOfItsOwn) {
  // Names that a copy might take, or be taken for.
  const std::string digits = "0123456789abcdef";
  const std::vector<std::string> others = {
      ".copy",
      ".copy.1",
      ".backup-scratch",
      ".backup-scratch.mine",
      ".backup-scratch.12-" + digits + "0",
      ".backup-scratch.12-" + digits + ".db",
      ".backup-scratch.-" + digits,
      ".backup-scratch.x-" + digits,
  };
  for (const std::string& other : others) WriteFile(path_ + other, "keep");
  WriteFile(dir_.path() + "/other.backup-scratch.12-" + digits, "keep");
  const auto names = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  };
  const auto before = names();
  std::string bytes;
  int64_t calls = 0;
  ASSERT_OK(log_->upkeep().StreamBackup(
      [&](std::string_view data) {
        EXPECT_EQ(names(), before) << "killed now it would stay";
        bytes += data;
        ++calls;
        return absl::OkStatus();
      },
      nullptr));
  EXPECT_GE(calls, 1);
  EXPECT_EQ(names(), before);
  const TempDir elsewhere;
  WriteFile(elsewhere.path() + "/copy", bytes);
  EXPECT_EQ(*(*OpenTuningLog(elsewhere.path() + "/copy"))->CountRecords(), 20);

  EXPECT_STATUS(log_->upkeep().StreamBackup(
                    [](std::string_view) { return absl::OkStatus(); },
                    [](const std::string&, int64_t, int64_t) { return false; }),
                kCancelled, "stopped");
  EXPECT_EQ(names(), before) << "of a copy that was stopped";

  // One of a process that was killed goes with the next opening.
  WriteFile(path_ + ".backup-scratch.12-" + digits, "half");
  log_.reset();
  log_ = *OpenTuningLog(path_);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(ReadFile(path_ + ".copy"), "keep");
}

TEST_F(Upkeep, NothingIsAcknowledgedIntoAFileThatIsGone) {
  fs::rename(path_, path_ + ".away");
  EXPECT_STATUS(log_->Append({Trial(20)}, 1), kFailedPrecondition,
                "deleted or moved away");
  EXPECT_STATUS(log_->ReserveOrdinals(1, 0, 1), kFailedPrecondition, path_);
  // What it holds can still be read, and saved.
  EXPECT_EQ(AllRecords(*log_, workload_).size(), 20u);
  const std::string copy = dir_.path() + "/saved";
  ASSERT_OK(log_->upkeep().Backup(copy, nullptr));
  EXPECT_EQ(*(*OpenTuningLog(copy))->CountRecords(), 20);

  WriteFile(path_, "another");
  EXPECT_STATUS(log_->Append({Trial(20)}, 1), kFailedPrecondition,
                "another file was put in the place");
  EXPECT_STATUS(log_->upkeep().Check([](const LogFinding&) {}, nullptr),
                kFailedPrecondition, "another file was put in the place");
  // The very file comes back, and with it everything.
  fs::rename(path_ + ".away", path_);
  ASSERT_OK(log_->Append({Trial(20)}, 1));
  log_.reset();
  log_ = *OpenTuningLog(path_);
  EXPECT_EQ(AllRecords(*log_, workload_).size(), 21u);
}

TEST_F(Upkeep, AWriteAheadLogThatIsGoneIsNoticedToo) {
  ASSERT_OK(log_->Append({Trial(20)}, 1));
  fs::rename(path_ + "-wal", path_ + "-wal.away");
  EXPECT_STATUS(log_->Append({Trial(21)}, 1), kFailedPrecondition,
                path_ + "-wal: the file in use was deleted");
  fs::rename(path_ + "-wal.away", path_ + "-wal");
  EXPECT_OK(log_->Append({Trial(22)}, 1));
}

TEST_F(Upkeep, ASecondOpenerHearsTheHoldersAddress) {
  log_->NameHolder("regatta-server at 127.0.0.1:4567");
  EXPECT_STATUS(OpenTuningLog(path_), kFailedPrecondition,
                "(regatta-server at 127.0.0.1:4567)");
}

}  // namespace
}  // namespace regatta::testing

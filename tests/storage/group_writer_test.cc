#include "storage/sqlite/group_writer.h"

#include <thread>

#include "tests/storage/fault_vfs.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::sqlite {
namespace {

using ::regatta::testing::FaultAction;
using ::regatta::testing::FaultVfs;

class GroupWriterTest : public ::testing::Test {
 protected:
  GroupWriterTest() {
    const std::string path = dir_.path() + "/db";
    EXPECT_OK(
        Connection::Open(path, Connection::Mode::kCreate)
            .value()
            ->Execute(
                "PRAGMA journal_mode = WAL; CREATE TABLE t(x INTEGER UNIQUE)"));
    writer_ = std::make_unique<GroupWriter>(
        Connection::Open(path, Connection::Mode::kReadWrite).value());
  }

  static absl::Status Insert(Connection& db, int x) {
    return db.Run("INSERT INTO t VALUES (?)", x);
  }

  int64_t Rows() {
    int64_t rows = -1;
    EXPECT_OK(writer_->Write([&](Connection& db) {
      rows = db.Number("SELECT count(*) FROM t").value();
      return absl::OkStatus();
    }));
    return rows;
  }

  // Runs the operations as one group: they queue up behind one that waits for
  // them. Returns their results.
  std::vector<absl::Status> RunAsGroup(
      const std::vector<std::function<absl::Status(Connection&)>>& operations,
      const std::function<void()>& before_group = [] {}) {
    std::vector<absl::Status> results(operations.size());
    std::vector<std::thread> threads;
    EXPECT_OK(writer_->Write([&](Connection&) {
      for (size_t i = 0; i < operations.size(); ++i) {
        threads.emplace_back(
            [&, i] { results[i] = writer_->Write(operations[i]); });
      }
      while (writer_->Queued() < operations.size()) std::this_thread::yield();
      before_group();
      return absl::OkStatus();
    }));
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  FaultVfs vfs_;
  testing::TempDir dir_;
  std::unique_ptr<GroupWriter> writer_;
};

TEST_F(GroupWriterTest, WhatIsQueuedSharesOneSync) {
  std::vector<std::function<absl::Status(Connection&)>> operations;
  for (int i = 0; i < 8; ++i) {
    operations.push_back([i](Connection& db) { return Insert(db, i); });
  }
  // The first commit also syncs the new write-ahead log's header.
  EXPECT_OK(writer_->Write([](Connection& db) { return Insert(db, 100); }));
  const int64_t before = FaultVfs::WalSyncs();
  for (const absl::Status& status : RunAsGroup(operations)) EXPECT_OK(status);
  // The one that waited wrote nothing, so it synced nothing.
  EXPECT_EQ(FaultVfs::WalSyncs(), before + 1);
  EXPECT_EQ(Rows(), 9);
}

TEST_F(GroupWriterTest, AnOperationThatFailsIsUndoneAlone) {
  const auto results = RunAsGroup({
      [](Connection& db) { return Insert(db, 1); },
      [](Connection& db) {
        EXPECT_OK(Insert(db, 2));
        return absl::InvalidArgumentError("malformed");
      },
      [](Connection& db) { return Insert(db, 3); },
  });
  EXPECT_OK(results[0]);
  EXPECT_STATUS(results[1], kInvalidArgument, "malformed");
  EXPECT_OK(results[2]);
  EXPECT_EQ(Rows(), 2);
}

TEST_F(GroupWriterTest, ACommitThatFailsFailsTheWholeGroup) {
  const auto results = RunAsGroup(
      {[](Connection& db) { return Insert(db, 1); },
       [](Connection& db) { return absl::NotFoundError("its own reason"); },
       [](Connection& db) { return Insert(db, 3); }},
      [] {
        FaultVfs::Arm(
            {.action = FaultAction::kFailSyncs, .code = SQLITE_IOERR_FSYNC});
      });
  FaultVfs::Disarm();
  EXPECT_STATUS(results[0], kUnavailable, "db");
  EXPECT_STATUS(results[1], kNotFound, "its own reason");
  EXPECT_STATUS(results[2], kUnavailable, "db");
  EXPECT_EQ(Rows(), 0);
  EXPECT_OK(writer_->Write([](Connection& db) { return Insert(db, 1); }));
  EXPECT_EQ(Rows(), 1);
}

}  // namespace
}  // namespace regatta::sqlite

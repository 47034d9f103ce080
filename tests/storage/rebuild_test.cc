// The view derived again in steps, with others that write between them.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/random.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/rebuild_best.h"
#include "storage/sqlite/record_store.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"
#include "tests/support/scale.h"

namespace regatta::testing {
namespace {

using sqlite::Connection;
using sqlite::ReaderPool;

constexpr int kWorkloads = 12;

using Rows = std::set<std::string>;

class Rebuild : public ::testing::Test {
 protected:
  Rebuild() : path_(dir_.path() + "/log") {
    auto log = *OpenTuningLog(path_);
    for (int i = 0; i < kWorkloads; ++i) {
      EXPECT_OK(log->PutWorkload(Workload(i)));
    }
  }

  static WorkloadInfo Workload(int i) { return Matmul(8 * (i + 1), 8, 8); }

  // Without the log's own lock: the steps run on connections of the test.
  void Open() {
    writer_ = *Connection::Open(path_, Connection::Mode::kReadWrite);
    // No crash is played here.
    EXPECT_OK(writer_->Execute("PRAGMA synchronous = OFF"));
    readers_ = std::make_unique<ReaderPool>(path_, Connection::Mode::kReadOnly,
                                            &held_);
  }

  absl::Status Write(
      const std::function<absl::Status(Connection&)>& operation) {
    EXPECT_OK(writer_->Run("BEGIN IMMEDIATE"));
    const absl::Status status = operation(*writer_);
    EXPECT_OK(writer_->Run(status.ok() ? "COMMIT" : "ROLLBACK"));
    return status;
  }

  // A result or a verdict at random, as it comes from a job.
  void Arrive(Random& random) {
    const WorkloadInfo workload =
        Workload(static_cast<int>(random.Below(kWorkloads)));
    if (!stored_.empty() && random.Below(4) == 0) {
      const auto& [trial, its] = stored_[random.Below(stored_.size())];
      Publication verdict = Verdict(trial, 1 + random.Below(9));
      (void)Write([&](Connection& db) {  // refused for some
        return sqlite::AddPublication(db, verdict, 1);
      });
      return;
    }
    v1::TrialResult result =
        OkResult(absl::StrCat("1/0/", next_++), workload,
                 absl::StrCat("s", random.Below(40)), 1 + random.Below(20));
    result.set_binary_hash(Sha256Hex("one"));
    if (random.Below(6) == 0) {
      result = Failed(result, v1::OUTCOME_WRONG_RESULT);
    }
    EXPECT_OK(Write([&](Connection& db) {
      const sqlite::EncodedRecord record = sqlite::Encode(result);
      return sqlite::AppendRecords(db, {&record, 1}, 1).status();
    }));
    stored_.push_back({result, workload});
  }

  Rows View() {
    auto find = *writer_->Query(
        "SELECT cell_id, record_id, publication_id FROM best_known");
    Rows rows;
    while (*find.Step()) {
      rows.insert(absl::StrCat(find.Int(0), " ", find.Int(1), " ",
                               find.IsNull(2) ? -1 : find.Int(2)));
    }
    return rows;
  }

  static std::map<int64_t, std::string> ByCell(const Rows& rows) {
    std::map<int64_t, std::string> by_cell;
    for (const std::string& row : rows) {
      EXPECT_TRUE(by_cell.emplace(std::stoll(row), row).second) << row;
    }
    return by_cell;
  }

  // From nothing, in one piece.
  Rows ViewOfTheRecords() {
    EXPECT_OK(writer_->Execute("BEGIN; DELETE FROM best_known"));
    EXPECT_OK(sqlite::DeriveAllBest(*writer_));
    const Rows rows = View();
    EXPECT_OK(writer_->Execute("ROLLBACK"));
    return rows;
  }

  // Bends rows of the view, behind everybody's back.
  void Bend(Random& random) {
    for (int i = 1; i <= kWorkloads; ++i) {
      switch (random.Below(3)) {
        case 0:
          EXPECT_OK(
              writer_->Run("DELETE FROM best_known WHERE cell_id = ?", i));
          break;
        case 1:
          EXPECT_OK(writer_->Run(
              "UPDATE best_known SET record_id = (SELECT id FROM record "
              "WHERE cell_id = best_known.cell_id ORDER BY random() LIMIT 1), "
              "publication_id = NULL WHERE cell_id = ?",
              i));
          break;
        default:
          break;
      }
    }
    EXPECT_OK(writer_->Run(
        "INSERT INTO best_known VALUES (999, 1, NULL)"));  // of no cell
  }

  TempDir dir_;
  const std::string path_;
  std::unique_ptr<Connection> writer_;
  sqlite::HeldStates held_;
  std::unique_ptr<ReaderPool> readers_;
  std::vector<std::pair<v1::TrialResult, WorkloadInfo>> stored_;
  int next_ = 0;
};

TEST_F(Rebuild, GivesWhatTheRecordsSayWhateverArrivesMeanwhile) {
  Open();
  const int cases = Scaled(30);
  int arrivals = 0, corrected = 0;
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    for (int i = 0; i < 20; ++i) Arrive(random);
    Bend(random);
    int writes = 0;
    const auto changed = sqlite::RebuildBest(
        *readers_,
        [&](const std::function<absl::Status(Connection&)>& operation) {
          // Between what the reader saw and what is written.
          for (; random.Below(3) != 0; ++arrivals) Arrive(random);
          ++writes;
          return Write(operation);
        },
        nullptr, /*cells_per_step=*/1 + random.Below(5));
    ASSERT_OK(changed);
    corrected += *changed > 1;
    EXPECT_GE(writes, 3);
    const Rows view = View();
    EXPECT_EQ(view, ViewOfTheRecords());
    // Nothing is left to do.
    const auto again = sqlite::RebuildBest(
        *readers_,
        [&](const std::function<absl::Status(Connection&)>& operation) {
          return Write(operation);
        },
        nullptr);
    ASSERT_OK(again);
    EXPECT_EQ(*again, 0);
  }
  EXPECT_GT(arrivals, cases);
  EXPECT_GT(corrected, cases / 2);
}

TEST_F(Rebuild, LeavesOldOrRightRowsWhereItEnds) {
  Open();
  Random random(1);
  for (int i = 0; i < 200; ++i) Arrive(random);
  const Rows right = View();
  ASSERT_EQ(right, ViewOfTheRecords());
  Bend(random);
  const Rows bent = View();
  std::set<int64_t> cells;
  for (const Rows& rows : {bent, right}) {
    for (const auto& [cell, row] : ByCell(rows)) cells.insert(cell);
  }
  for (int last = 1;; ++last) {
    SCOPED_TRACE(absl::StrCat("ends before write ", last));
    int writes = 0;
    const auto changed = sqlite::RebuildBest(
        *readers_,
        [&](const std::function<absl::Status(Connection&)>& operation) {
          if (++writes == last) return absl::UnavailableError("killed");
          return Write(operation);
        },
        nullptr, /*cells_per_step=*/1);
    // Each cell is as it was bent, perhaps away, or as it should be.
    const std::map<int64_t, std::string> now = ByCell(View());
    const auto row_of = [](const std::map<int64_t, std::string>& rows,
                           int64_t cell) {
      const auto row = rows.find(cell);
      return row == rows.end() ? "none" : row->second;
    };
    for (const int64_t cell : cells) {
      const std::string row = row_of(now, cell);
      EXPECT_TRUE(row == row_of(ByCell(bent), cell) ||
                  row == row_of(ByCell(right), cell))
          << "cell " << cell << " has " << row;
    }
    EXPECT_EQ(now.size(),
              static_cast<size_t>(std::count_if(
                  cells.begin(), cells.end(),
                  [&](int64_t cell) { return now.contains(cell); })))
        << "rows of cells that never had one";
    if (changed.ok()) break;
    ASSERT_LE(last, kWorkloads + 1);
  }
  EXPECT_EQ(View(), right);
}

// What it corrected by then stays.
TEST_F(Rebuild, StopsWhenToldTo) {
  Open();
  Random random(1);
  for (int i = 0; i < 200; ++i) Arrive(random);
  const Rows right = View();
  const auto run = [&](const UpkeepProgress& progress, int* writes) {
    return sqlite::RebuildBest(
        *readers_,
        [&](const std::function<absl::Status(Connection&)>& operation) {
          ++*writes;
          return Write(operation);
        },
        progress, /*cells_per_step=*/1,
        /*interval=*/absl::ZeroDuration());
  };
  const auto lacking = [&] {
    const Rows view = View();
    return std::count_if(right.begin(), right.end(),
                         [&](const auto& row) { return !view.contains(row); });
  };
  // At once.
  EXPECT_OK(writer_->Run("DELETE FROM best_known"));
  int writes = 0;
  const auto at_once =
      run([](const std::string&, int64_t, int64_t) { return false; }, &writes);
  EXPECT_STATUS(at_once, kCancelled, "stopped");
  EXPECT_EQ(lacking(), static_cast<int64_t>(right.size()));
  // Once some are corrected: the first write removes strays, each other
  // corrects a cell.
  writes = 0;
  const auto later =
      run([&](const std::string&, int64_t, int64_t) { return writes < 4; },
          &writes);
  EXPECT_STATUS(later, kCancelled, "stopped");
  EXPECT_EQ(writes, 4);
  EXPECT_EQ(lacking(), static_cast<int64_t>(right.size()) - 3);
}

// As a writer asks whose write-ahead log is too long. Each step but those of
// one cell begins anew with fewer cells; those fail with what to do.
TEST_F(Rebuild, AStepThatIsAskedToEndBeginsAnewWithFewerCells) {
  Open();
  Random random(2);
  // Enough that each cell is looked at in the middle.
  for (int i = 0; i < 2000; ++i) Arrive(random);
  const Rows right = View();
  EXPECT_OK(writer_->Run("DELETE FROM best_known"));
  int asks = 0;
  const auto run = [&](int most_asks) {
    return sqlite::RebuildBest(
        *readers_,
        [&](const std::function<absl::Status(Connection&)>& operation) {
          return Write(operation);
        },
        [&](const std::string&, int64_t, int64_t) {
          if (asks < most_asks && held_.AskOldest()) ++asks;
          return true;
        },
        /*cells_per_step=*/16, /*interval=*/absl::ZeroDuration());
  };
  // 16, 4 and 1 cells, of which the first ones may be done before it is asked.
  EXPECT_STATUS(run(1000), kAborted, path_);
  EXPECT_GE(asks, 3);
  EXPECT_OK(writer_->Run("DELETE FROM best_known"));
  asks = 0;
  const auto changed = run(2);
  ASSERT_OK(changed);
  EXPECT_EQ(asks, 2);
  EXPECT_EQ(*changed, static_cast<int64_t>(right.size()));
  EXPECT_EQ(View(), right);
}

// The whole log: commits of others go through while it is at work.
TEST(RebuildOfALog, LetsOthersCommitMeanwhile) {
  const TempDir dir;
  const std::string path = dir.path() + "/log";
  const auto log = *OpenTuningLog(path);
  for (int i = 0; i < 3; ++i) {
    const WorkloadInfo workload = Matmul(8 * (i + 1), 8, 8);
    ASSERT_OK(log->PutWorkload(workload));
    ASSERT_OK(log->Append(
        {OkResult(absl::StrCat("1/0/", i), workload, "s", 100)}, 1));
  }
  int commits = 0;
  const auto changed = log->RebuildBest([&](const std::string& phase, int64_t,
                                            int64_t total) {
    EXPECT_EQ(phase, "deriving best-known again");
    EXPECT_EQ(total, 3);
    // On this very thread: a writer that was held would never answer.
    EXPECT_OK(log->Append(
        {OkResult(absl::StrCat("2/0/", commits++), Matmul(8, 8, 8), "t", 50)},
        1));
    return true;
  });
  ASSERT_OK(changed);
  EXPECT_EQ(*changed, 0);
  EXPECT_GE(commits, 1);
  EXPECT_EQ((*log->Best(KeyFor(Matmul(8, 8, 8))))->record.result.time_ns(), 50);
}

}  // namespace
}  // namespace regatta::testing

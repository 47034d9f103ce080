#include "storage/sqlite/rebuild_best.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "storage/paced_progress.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/read_again.h"

namespace regatta::sqlite {
namespace {

// What the records of some cells say, as of one state of the log.
struct Step {
  BestMarks marks;
  std::vector<std::pair<int64_t, std::optional<BestRow>>> cells;
};

absl::StatusOr<std::vector<int64_t>> CellsAfter(Connection& db, int64_t after,
                                                int64_t limit) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT id FROM cell WHERE id > ? ORDER BY id LIMIT ?", after,
               limit));
  std::vector<int64_t> cells;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return cells;
    cells.push_back(find.Int(0));
  }
}

absl::StatusOr<Step> Derive(Connection& db, int64_t after, int64_t limit,
                            int64_t done, PacedProgress& progress) {
  ASSIGN_OR_RETURN(const ReadTransaction snapshot, ReadTransaction::Begin(db));
  const StepWatch watch(db, [&progress] { return progress.GoOn(); });
  Step step;
  ASSIGN_OR_RETURN(step.marks.record,
                   db.Number("SELECT coalesce(max(id), 0) FROM record"));
  ASSIGN_OR_RETURN(step.marks.publication,
                   db.Number("SELECT coalesce(max(id), 0) FROM publication"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> cells,
                   CellsAfter(db, after, limit));
  for (const int64_t cell : cells) {
    ASSIGN_OR_RETURN(std::optional<BestRow> best, FindBestRow(db, cell));
    step.cells.emplace_back(cell, best);
    progress.Done(++done);
  }
  return step;
}

// Rows of cells that are none: no record can be theirs.
absl::Status RemoveStrays(Connection& db) {
  return db.Run(
      "DELETE FROM best_known WHERE cell_id NOT IN (SELECT id FROM cell)");
}

absl::Status Stopped() {
  return absl::CancelledError(
      "the rebuild was stopped; what it corrected stays");
}

}  // namespace

absl::StatusOr<int64_t> RebuildBest(
    ReaderPool& readers,
    const std::function<
        absl::Status(const std::function<absl::Status(Connection&)>&)>& write,
    const UpkeepProgress& progress, int64_t cells_per_step,
    absl::Duration interval) {
  int64_t changed = 0;
  // First, so that a log that cannot be written says so at once.
  RETURN_IF_ERROR(write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(RemoveStrays(db));
    changed = db.Changes();
    return absl::OkStatus();
  }));
  int64_t total = 0, last = 0, done = 0, after = 0;
  ASSIGN_OR_RETURN(total, ReadAgain(readers, [](Connection& db) {
                     return db.Number("SELECT count(*) FROM cell");
                   }));
  // Those that come later are right from the start.
  ASSIGN_OR_RETURN(last, ReadAgain(readers, [](Connection& db) {
                     return db.Number("SELECT coalesce(max(id), 0) FROM cell");
                   }));
  PacedProgress paced(progress, interval);
  if (!paced.Begin("deriving best-known again", total)) return Stopped();
  while (after < last) {
    Step step;
    {
      ASSIGN_OR_RETURN(const ReaderPool::Loan db, readers.Borrow());
      auto derived = Derive(*db, after, cells_per_step, done, paced);
      if (absl::IsAborted(derived.status()) && cells_per_step > 1) {
        cells_per_step = std::max<int64_t>(1, cells_per_step / 4);
        continue;
      }
      if (absl::IsCancelled(derived.status()) ||
          (derived.ok() && !paced.GoOn())) {
        return Stopped();
      }
      RETURN_IF_ERROR(derived.status());
      step = *std::move(derived);
    }
    if (step.cells.empty()) break;
    int64_t here = 0;
    RETURN_IF_ERROR(write([&](Connection& db) -> absl::Status {
      here = 0;
      for (const auto& [cell, best] : step.cells) {
        ASSIGN_OR_RETURN(const bool differs,
                         CorrectBest(db, cell, best, step.marks));
        here += differs;
      }
      return absl::OkStatus();
    }));
    changed += here;
    done += static_cast<int64_t>(step.cells.size());
    after = step.cells.back().first;
  }
  return changed;
}

}  // namespace regatta::sqlite

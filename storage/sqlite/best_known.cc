#include "storage/sqlite/best_known.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"
#include "storage/sqlite/record_store.h"

// Record r gave a wrong result elsewhere in its cell: same schedule, same
// binary.
#define REGATTA_DISPROVED                                               \
  "EXISTS (SELECT 1 FROM record wrong WHERE wrong.cell_id = r.cell_id " \
  "AND wrong.schedule_hash = r.schedule_hash AND wrong.outcome = 3 "    \
  "AND wrong.binary_hash IS r.binary_hash)"

namespace regatta::sqlite {
namespace {

static_assert(v1::OUTCOME_OK == 1 && v1::OUTCOME_WRONG_RESULT == 3 &&
                  v1::TRIAL_KIND_DEFAULT == 1,
              "these numbers stand in the SQL");

struct Incumbent {
  int64_t record_id = 0;
  bool published = false;
  int64_t time_ns = 0;
  int64_t schedule_hash = 0;
  std::optional<std::string> binary_hash;
};

absl::StatusOr<std::optional<Incumbent>> FindIncumbent(Connection& db,
                                                       int64_t cell) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT r.id, b.publication_id, r.time_ns, r.schedule_hash, "
               "r.binary_hash FROM best_known b JOIN record r "
               "ON r.id = b.record_id WHERE b.cell_id = ?",
               cell));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  if (!row) return std::optional<Incumbent>();
  Incumbent incumbent{.record_id = find.Int(0),
                      .published = !find.IsNull(1),
                      .time_ns = find.Int(2),
                      .schedule_hash = find.Int(3)};
  if (!find.IsNull(4)) incumbent.binary_hash = find.Text(4);
  return std::optional<Incumbent>(std::move(incumbent));
}

absl::StatusOr<bool> IsDisproved(Connection& db, int64_t record_id) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Query("SELECT 1 FROM record r WHERE r.id = ? "
                            "AND " REGATTA_DISPROVED,
                            record_id));
  return find.Step();
}

absl::Status SetBest(Connection& db, int64_t cell, int64_t record_id,
                     std::optional<int64_t> publication_id) {
  return db.Run(
      "INSERT OR REPLACE INTO best_known(cell_id, record_id, publication_id) "
      "VALUES (?, ?, ?)",
      cell, record_id, publication_id);
}

// The rule, from nothing: the last publication that was not disproved, else the
// fastest eligible record.
absl::Status DeriveBest(Connection& db, int64_t cell) {
  RETURN_IF_ERROR(db.Run("DELETE FROM best_known WHERE cell_id = ?", cell));
  RETURN_IF_ERROR(
      db.Run("INSERT INTO best_known SELECT p.cell_id, r.id, p.id "
             "FROM publication p JOIN record r ON r.id = p.record_id "
             "WHERE p.cell_id = ? AND NOT " REGATTA_DISPROVED
             " ORDER BY p.id DESC LIMIT 1",
             cell));
  if (db.Changes() > 0) return absl::OkStatus();
  return db.Run(
      "INSERT INTO best_known SELECT r.cell_id, r.id, NULL FROM record r "
      "WHERE r.cell_id = ? AND r.outcome = 1 AND r.abandoned = 0 "
      "AND r.time_ns > 0 AND NOT " REGATTA_DISPROVED
      " ORDER BY r.time_ns, r.id LIMIT 1",
      cell);
}

// The record of a publication's trial, once it is seen to be timed and of the
// cell; or why it may have none. An error is the database's.
struct Published {
  int64_t record_id = 0;
  absl::Status refusal;
};

absl::StatusOr<Published> FindPublished(Connection& db, int64_t cell,
                                        const Publication& publication) {
  const std::string name =
      absl::StrCat("publication of trial ", publication.trial_id);
  ASSIGN_OR_RETURN(Statement find,
                   db.Query("SELECT id, cell_id, outcome, abandoned, time_ns "
                            "FROM record WHERE trial_id = ?",
                            publication.trial_id));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  Published found;
  if (!row) {
    found.refusal = absl::NotFoundError(absl::StrCat(name, ": no such trial"));
    return found;
  }
  found.record_id = find.Int(0);
  const auto outcome = static_cast<v1::Outcome>(find.Int(2));
  if (find.Int(1) != cell) {
    found.refusal = absl::InvalidArgumentError(absl::StrCat(
        name, ": the trial is of another workload, class or policy"));
  } else if (outcome != v1::OUTCOME_OK || find.Int(3) != 0 ||
             find.Int(4) <= 0) {
    found.refusal = absl::FailedPreconditionError(absl::StrCat(
        name, ": it was not verified and timed to its end (outcome ",
        OutcomeName(outcome), find.Int(3) != 0 ? ", abandoned" : "", ")"));
  }
  return found;
}

absl::Status InsertPublication(Connection& db, int64_t cell, int64_t record_id,
                               const Publication& publication,
                               int64_t unix_ms) {
  return db.Run(
      "INSERT INTO publication(cell_id, record_id, time_ns, low_ns, high_ns, "
      "default_ns, speedup, speedup_low, speedup_high, job_id, unix_ms) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      cell, record_id, publication.time_ns, publication.low_ns,
      publication.high_ns, publication.default_ns, publication.speedup,
      publication.speedup_low, publication.speedup_high, publication.job_id,
      unix_ms);
}

}  // namespace

absl::Status NoteRecord(Connection& db, int64_t cell, int64_t record_id,
                        const EncodedRecord& record) {
  const bool wrong = record.outcome == v1::OUTCOME_WRONG_RESULT;
  if (!record.eligible && !wrong) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<Incumbent> incumbent,
                   FindIncumbent(db, cell));
  if (wrong) {
    if (incumbent.has_value() &&
        incumbent->schedule_hash == record.schedule_hash &&
        incumbent->binary_hash == record.binary_hash) {
      return DeriveBest(db, cell);
    }
    return absl::OkStatus();
  }
  // Ties go to the earlier record.
  if (incumbent.has_value() &&
      (incumbent->published || incumbent->time_ns <= record.time_ns)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const bool disproved, IsDisproved(db, record_id));
  if (disproved) return absl::OkStatus();
  return SetBest(db, cell, record_id, std::nullopt);
}

absl::Status AddPublication(Connection& db, const Publication& publication,
                            int64_t unix_ms) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> cell,
                   FindCell(db, publication.key));
  // Without records no cell; 0 is the id of none.
  ASSIGN_OR_RETURN(const Published found,
                   FindPublished(db, cell.value_or(0), publication));
  RETURN_IF_ERROR(found.refusal);
  const int64_t record_id = found.record_id;
  ASSIGN_OR_RETURN(const bool disproved, IsDisproved(db, record_id));
  if (disproved) {
    return absl::FailedPreconditionError(
        absl::StrCat("publication of trial ", publication.trial_id,
                     ": another trial of the same binary gave a wrong result"));
  }
  RETURN_IF_ERROR(
      InsertPublication(db, *cell, record_id, publication, unix_ms));
  return SetBest(db, *cell, record_id, db.LastInsertId());
}

absl::StatusOr<AddedPublication> AddImportedPublication(
    Connection& db, const Publication& publication, int64_t unix_ms) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> cell,
                   FindCell(db, publication.key));
  ASSIGN_OR_RETURN(const Published found,
                   FindPublished(db, cell.value_or(0), publication));
  if (!found.refusal.ok()) return AddedPublication{false, found.refusal};
  const int64_t record_id = found.record_id;
  {
    // A publication is itself: one row has no other name.
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT 1 FROM publication WHERE cell_id = ? "
                 "AND record_id = ? AND time_ns = ? AND low_ns = ? "
                 "AND high_ns = ? AND default_ns = ? AND speedup = ? "
                 "AND speedup_low = ? AND speedup_high = ? AND job_id = ? "
                 "AND unix_ms = ?",
                 *cell, record_id, publication.time_ns, publication.low_ns,
                 publication.high_ns, publication.default_ns,
                 publication.speedup, publication.speedup_low,
                 publication.speedup_high, publication.job_id, unix_ms));
    ASSIGN_OR_RETURN(const bool there, find.Step());
    if (there) return AddedPublication();
  }
  RETURN_IF_ERROR(
      InsertPublication(db, *cell, record_id, publication, unix_ms));
  RETURN_IF_ERROR(DeriveBest(db, *cell));
  return AddedPublication{.added = true, .refusal = absl::OkStatus()};
}

absl::StatusOr<int64_t> RebuildBestKnown(Connection& db) {
  RETURN_IF_ERROR(
      db.Execute("DROP TABLE IF EXISTS temp.best_before;"
                 "CREATE TEMP TABLE best_before AS SELECT * FROM best_known;"));
  RETURN_IF_ERROR(db.Run("DELETE FROM best_known"));
  std::vector<int64_t> cells;
  {
    ASSIGN_OR_RETURN(Statement find, db.Query("SELECT id FROM cell"));
    while (true) {
      ASSIGN_OR_RETURN(const bool row, find.Step());
      if (!row) break;
      cells.push_back(find.Int(0));
    }
  }
  for (const int64_t cell : cells) RETURN_IF_ERROR(DeriveBest(db, cell));
  ASSIGN_OR_RETURN(const int64_t changed,
                   db.Number("SELECT count(DISTINCT cell_id) FROM ("
                             "SELECT * FROM (SELECT * FROM temp.best_before "
                             "EXCEPT SELECT * FROM best_known) UNION ALL "
                             "SELECT * FROM (SELECT * FROM best_known "
                             "EXCEPT SELECT * FROM temp.best_before))"));
  RETURN_IF_ERROR(db.Execute("DROP TABLE temp.best_before"));
  return changed;
}

}  // namespace regatta::sqlite

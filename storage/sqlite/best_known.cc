#include "storage/sqlite/best_known.h"

#include <optional>
#include <string>
#include <utility>

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

absl::StatusOr<std::optional<BestRow>> ReadBestRow(Statement find) {
  ASSIGN_OR_RETURN(const bool row, find.Step());
  if (!row) return std::optional<BestRow>();
  BestRow best{.record_id = find.Int(0)};
  if (!find.IsNull(1)) best.publication_id = find.Int(1);
  return std::optional<BestRow>(best);
}

absl::StatusOr<std::optional<BestRow>> StoredBest(Connection& db,
                                                  int64_t cell) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Query("SELECT record_id, publication_id FROM best_known "
                            "WHERE cell_id = ?",
                            cell));
  return ReadBestRow(std::move(find));
}

absl::Status SetBest(Connection& db, int64_t cell, int64_t record_id,
                     std::optional<int64_t> publication_id) {
  return db.Run(
      "INSERT OR REPLACE INTO best_known(cell_id, record_id, publication_id) "
      "VALUES (?, ?, ?)",
      cell, record_id, publication_id);
}

// Makes `best` that of the cell. Whether anything changed.
absl::StatusOr<bool> PutBest(Connection& db, int64_t cell,
                             const std::optional<BestRow>& best) {
  ASSIGN_OR_RETURN(const std::optional<BestRow> before, StoredBest(db, cell));
  if (best == before) return false;
  RETURN_IF_ERROR(
      best ? SetBest(db, cell, best->record_id, best->publication_id)
           : db.Run("DELETE FROM best_known WHERE cell_id = ?", cell));
  return true;
}

// The rule, from nothing.
absl::Status DeriveBest(Connection& db, int64_t cell) {
  ASSIGN_OR_RETURN(const std::optional<BestRow> best, FindBestRow(db, cell));
  return PutBest(db, cell, best).status();
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

// The last publication that was not disproved, else the fastest eligible
// record.
absl::StatusOr<std::optional<BestRow>> FindBestRow(Connection& db,
                                                   int64_t cell) {
  {
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT r.id, p.id FROM publication p JOIN record r "
                 "ON r.id = p.record_id WHERE p.cell_id = ? "
                 "AND NOT " REGATTA_DISPROVED " ORDER BY p.id DESC LIMIT 1",
                 cell));
    ASSIGN_OR_RETURN(const std::optional<BestRow> published,
                     ReadBestRow(std::move(find)));
    if (published) return published;
  }
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT r.id, NULL FROM record r "
               "WHERE r.cell_id = ? AND r.outcome = 1 AND r.abandoned = 0 "
               "AND r.time_ns > 0 AND NOT " REGATTA_DISPROVED
               " ORDER BY r.time_ns, r.id LIMIT 1",
               cell));
  return ReadBestRow(std::move(find));
}

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

absl::StatusOr<KnownPublication> FindPublication(Connection& db,
                                                 const Publication& publication,
                                                 int64_t unix_ms) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> cell,
                   FindCell(db, publication.key));
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT p.cell_id = ? AND p.time_ns = ? AND p.low_ns = ? AND "
               "p.high_ns = ? "
               "AND p.default_ns = ? AND p.speedup = ? AND p.speedup_low = ? "
               "AND p.speedup_high = ? AND p.job_id = ?, p.unix_ms "
               "FROM record r CROSS JOIN publication p "
               "ON p.cell_id = r.cell_id AND p.record_id = r.id "
               "WHERE r.trial_id = ?",
               cell.value_or(0), publication.time_ns, publication.low_ns,
               publication.high_ns, publication.default_ns, publication.speedup,
               publication.speedup_low, publication.speedup_high,
               publication.job_id, publication.trial_id));
  KnownPublication known = KnownPublication::kNone;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return known;
    if (find.Int(0) == 0) {
      known = KnownPublication::kAnotherVerdict;
    } else if (find.Int(1) == unix_ms) {
      return KnownPublication::kSame;
    } else if (known == KnownPublication::kNone) {
      known = KnownPublication::kAnotherTime;
    }
  }
}

absl::StatusOr<AddedPublication> AddImportedPublication(
    Connection& db, const Publication& publication, int64_t unix_ms) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> cell,
                   FindCell(db, publication.key));
  ASSIGN_OR_RETURN(const Published found,
                   FindPublished(db, cell.value_or(0), publication));
  if (!found.refusal.ok()) return AddedPublication{false, found.refusal};
  ASSIGN_OR_RETURN(const KnownPublication known,
                   FindPublication(db, publication, unix_ms));
  if (known == KnownPublication::kSame) return AddedPublication();
  if (known == KnownPublication::kAnotherVerdict) {
    return AddedPublication{
        false, absl::AlreadyExistsError("another verdict of the trial")};
  }
  RETURN_IF_ERROR(
      InsertPublication(db, *cell, found.record_id, publication, unix_ms));
  RETURN_IF_ERROR(DeriveBest(db, *cell));
  return AddedPublication{.added = true, .refusal = absl::OkStatus()};
}

absl::Status DeriveAllBest(Connection& db) {
  ASSIGN_OR_RETURN(Statement find, db.Query("SELECT id FROM cell"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return absl::OkStatus();
    RETURN_IF_ERROR(DeriveBest(db, find.Int(0)));
  }
}

absl::StatusOr<bool> CorrectBest(Connection& db, int64_t cell,
                                 const std::optional<BestRow>& best,
                                 const BestMarks& marks) {
  ASSIGN_OR_RETURN(const std::optional<BestRow> before, StoredBest(db, cell));
  RETURN_IF_ERROR(PutBest(db, cell, best).status());
  {
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT id, outcome, abandoned, time_ns, schedule_hash, "
                 "binary_hash FROM record WHERE cell_id = ? AND id > ? "
                 "ORDER BY id",
                 cell, marks.record));
    while (true) {
      ASSIGN_OR_RETURN(const bool row, find.Step());
      if (!row) break;
      EncodedRecord record;  // what is noted of it
      record.outcome = static_cast<int>(find.Int(1));
      record.time_ns = find.Int(3);
      record.eligible = record.outcome == v1::OUTCOME_OK && find.Int(2) == 0 &&
                        record.time_ns > 0;
      record.schedule_hash = find.Int(4);
      if (!find.IsNull(5)) record.binary_hash = find.Text(5);
      RETURN_IF_ERROR(NoteRecord(db, cell, find.Int(0), record));
    }
  }
  {
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT p.id, p.record_id FROM publication p JOIN record r "
                 "ON r.id = p.record_id WHERE p.cell_id = ? AND p.id > ? "
                 "AND NOT " REGATTA_DISPROVED " ORDER BY p.id DESC LIMIT 1",
                 cell, marks.publication));
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (row) RETURN_IF_ERROR(SetBest(db, cell, find.Int(1), find.Int(0)));
  }
  ASSIGN_OR_RETURN(const std::optional<BestRow> after, StoredBest(db, cell));
  return after != before;
}

}  // namespace regatta::sqlite

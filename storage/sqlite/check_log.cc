#include "storage/sqlite/check_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/migrations.h"

namespace regatta::sqlite {
namespace {

// Rows of each table of a large log that are read to the last byte.
constexpr int64_t kSampledRows = 24;

absl::Status Corrupt(const std::string& path, const std::string& finding) {
  return absl::DataLossError(
      absl::StrCat(path, ": the tuning log is corrupt: ", finding,
                   "; restore a backup, the file was left as it is"));
}

// A check that lists its findings, "ok" for none.
absl::Status RunCheck(Connection& db, const std::string& path,
                      const char* pragma) {
  ASSIGN_OR_RETURN(Statement check, db.Query(pragma));
  ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string finding = row ? check.Text(0) : "the check says nothing";
  return finding == "ok" ? absl::OkStatus() : Corrupt(path, finding);
}

struct Sample {
  const char* table;
  const char* last;  // its largest id
  // A row at or after id ?, with what it points to; column 0 is 1 when they
  // agree.
  const char* read;
};

// The hex() make SQLite read a value to its end.
constexpr Sample kSamples[] = {
    {"record", "SELECT coalesce(max(id), 0) FROM record",
     "SELECT t.id = r.id, hex(r.body), hex(x.bytes), w.text FROM record r "
     "LEFT JOIN context x ON x.id = r.context_id "
     "LEFT JOIN cell c ON c.id = r.cell_id "
     "LEFT JOIN workload w ON w.id = c.workload_id "
     "LEFT JOIN record t ON t.trial_id = r.trial_id "
     "WHERE r.id >= ? AND x.id + w.id > 0 ORDER BY r.id LIMIT 1"},
    {"workload", "SELECT coalesce(max(id), 0) FROM workload",
     "SELECT k.id = w.id, w.structure FROM workload w "
     "LEFT JOIN workload k ON k.key = w.key "
     "WHERE w.id >= ? ORDER BY w.id LIMIT 1"},
    {"best_known", "SELECT coalesce(max(cell_id), 0) FROM best_known",
     "SELECT r.cell_id = b.cell_id FROM best_known b "
     "LEFT JOIN record r ON r.id = b.record_id "
     "WHERE b.cell_id >= ? ORDER BY b.cell_id LIMIT 1"},
    {"publication", "SELECT coalesce(max(id), 0) FROM publication",
     "SELECT r.cell_id = p.cell_id FROM publication p "
     "LEFT JOIN record r ON r.id = p.record_id "
     "WHERE p.id >= ? ORDER BY p.id LIMIT 1"},
    {"job", "SELECT coalesce(max(id), 0) FROM job",
     "SELECT 1, hex(request), hex(status), hex(checkpoint) FROM job "
     "WHERE id >= ? ORDER BY id LIMIT 1"},
};

absl::Status ReadSamples(Connection& db, const std::string& path,
                         const Sample& sample) {
  ASSIGN_OR_RETURN(const int64_t last, db.Number(sample.last));
  const int64_t rows = std::min(last, kSampledRows);
  for (int64_t i = 1; i <= rows; ++i) {
    // The last row, the newest, is among them.
    const auto id = static_cast<int64_t>(static_cast<double>(last) * i / rows);
    ASSIGN_OR_RETURN(Statement read, db.Query(sample.read, id));
    ASSIGN_OR_RETURN(const bool row, read.Step());
    if (!row || read.Int(0) != 1) {
      return Corrupt(
          path, absl::StrCat("the row of table ", sample.table, " at id ", id,
                             " or one that it belongs to is missing"));
    }
  }
  return absl::OkStatus();
}

// The same number of pages whatever the size of the log.
absl::Status CheckSamples(Connection& db, const std::string& path) {
  RETURN_IF_ERROR(RunCheck(db, path, "PRAGMA quick_check(meta)"));
  for (const Sample& sample : kSamples) {
    RETURN_IF_ERROR(ReadSamples(db, path, sample));
  }
  return absl::OkStatus();
}

absl::Status CheckPages(Connection& db, const std::string& path,
                        int64_t full_check_bytes) {
  ASSIGN_OR_RETURN(const int64_t pages, db.Number("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t page_bytes, db.Number("PRAGMA page_size"));
  return pages * page_bytes <= full_check_bytes
             ? RunCheck(db, path, "PRAGMA quick_check(1)")
             : CheckSamples(db, path);
}

}  // namespace

absl::StatusOr<int64_t> CheckLog(Connection& db, const std::string& path,
                                 int64_t newest, int64_t full_check_bytes) {
  // Damage can show in any of these; only a full disk and the like is not it.
  ASSIGN_OR_RETURN(const int64_t application,
                   db.Number("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t version, db.Number("PRAGMA user_version"));
  if (application != kApplicationId || version < 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": is an SQLite database of another program, not a tuning log; "
        "name another file"));
  }
  if (version > newest) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the tuning log has version ", version,
                     ", this program reads up to ", newest,
                     "; use a newer Regatta, the file was left as it is"));
  }
  RETURN_IF_ERROR(CheckPages(db, path, full_check_bytes));
  const auto log_id =
      db.Number("SELECT count(*) FROM meta WHERE name = 'log_id'");
  if (!log_id.ok())
    return Corrupt(path, std::string(log_id.status().message()));
  if (*log_id != 1) return Corrupt(path, "it has no log_id");
  return version;
}

}  // namespace regatta::sqlite

#include "storage/sqlite/check_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/migrations.h"

namespace regatta::sqlite {
namespace {

// Records of a large log that are read to the last byte.
constexpr int64_t kSampledRecords = 64;

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

absl::Status SampleRecords(Connection& db) {
  ASSIGN_OR_RETURN(const int64_t last,
                   db.Number("SELECT coalesce(max(id), 0) FROM record"));
  for (int64_t i = 1; i <= kSampledRecords; ++i) {
    const int64_t id = std::max<int64_t>(
        1,
        static_cast<int64_t>(static_cast<double>(last) * i / kSampledRecords));
    RETURN_IF_ERROR(db.Run("SELECT hex(body) FROM record WHERE id = ?", id));
  }
  return absl::OkStatus();
}

absl::Status CheckPages(Connection& db, const std::string& path,
                        int64_t full_check_bytes) {
  ASSIGN_OR_RETURN(const int64_t pages, db.Number("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t page_bytes, db.Number("PRAGMA page_size"));
  if (pages * page_bytes <= full_check_bytes) {
    return RunCheck(db, path, "PRAGMA quick_check(1)");
  }
  for (const char* check :
       {"PRAGMA quick_check(meta)", "PRAGMA quick_check(workload)",
        "PRAGMA quick_check(cell)", "PRAGMA quick_check(context)",
        "PRAGMA quick_check(publication)", "PRAGMA quick_check(best_known)",
        "PRAGMA quick_check(job)", "PRAGMA quick_check(ordinal)"}) {
    RETURN_IF_ERROR(RunCheck(db, path, check));
  }
  return SampleRecords(db);
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

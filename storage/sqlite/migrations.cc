#include "storage/sqlite/migrations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace regatta::sqlite {

absl::Status Migrate(Connection& db, absl::Span<const char* const> migrations) {
  ASSIGN_OR_RETURN(const int64_t found, db.Number("PRAGMA user_version"));
  const int64_t newest = static_cast<int64_t>(migrations.size());
  CHECK(found <= newest) << "version " << found << " of " << newest;
  for (int64_t version = found; version < newest; ++version) {
    const absl::Status status = db.Execute(absl::StrCat(
        "BEGIN IMMEDIATE;", migrations[version], ";PRAGMA user_version = ",
        version + 1, ";PRAGMA application_id = ", kApplicationId, ";COMMIT;"));
    if (!status.ok()) {
      if (db.InTransaction()) (void)db.Execute("ROLLBACK");
      return Annotate(status,
                      absl::StrCat("migrating to version ", version + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace regatta::sqlite

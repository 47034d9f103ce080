// Layouts of the tuning log, and the way from each to the next.
#ifndef REGATTA_STORAGE_SQLITE_MIGRATIONS_H_
#define REGATTA_STORAGE_SQLITE_MIGRATIONS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

// In PRAGMA application_id of every tuning log: "RgTL".
inline constexpr int64_t kApplicationId = 0x5267544C;

// THE list, embedded from migrations/NNN_*.sql: script n (from 0) leads from
// version n to n + 1. An empty database is version 0.
absl::Span<const char* const> Migrations();

// Runs what is missing of `migrations`, each with its version in a transaction
// of its own: a crash leaves a whole version. REQUIRES: the version in the file
// is not newer.
absl::Status Migrate(Connection& db, absl::Span<const char* const> migrations);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_MIGRATIONS_H_

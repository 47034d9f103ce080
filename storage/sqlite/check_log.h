// The check of an existing log before it is used. Opening must not take longer
// as a log grows: LogUpkeep::Check reads everything.
#ifndef REGATTA_STORAGE_SQLITE_CHECK_LOG_H_
#define REGATTA_STORAGE_SQLITE_CHECK_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

// Files up to this size are checked page by page; of larger ones some rows of
// every table, the newest among them, with the rows that they point to.
inline constexpr int64_t kFullCheckBytes = int64_t{16} << 20;

// Returns the version of the log that `db` reads, without writing.
// FailedPrecondition: it is newer than `newest` (names both), or a database of
// another program. DataLoss: it is corrupt, and what was found.
absl::StatusOr<int64_t> CheckLog(Connection& db, const std::string& path,
                                 int64_t newest,
                                 int64_t full_check_bytes = kFullCheckBytes);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_CHECK_LOG_H_

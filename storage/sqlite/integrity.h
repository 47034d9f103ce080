// The check of everything in a log (see LogUpkeep::Check).
#ifndef REGATTA_STORAGE_SQLITE_INTEGRITY_H_
#define REGATTA_STORAGE_SQLITE_INTEGRITY_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "storage/log_upkeep.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

// `db` is a connection of its own: the check leaves temporary tables on it that
// hide those of the file. It may be read-only. Returns the number of records.
absl::StatusOr<int64_t> CheckIntegrity(
    Connection& db, const std::function<void(const LogFinding&)>& visit,
    const UpkeepProgress& progress);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_INTEGRITY_H_

// The check of everything in a log (see LogUpkeep::Check).
#ifndef REGATTA_STORAGE_SQLITE_INTEGRITY_H_
#define REGATTA_STORAGE_SQLITE_INTEGRITY_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/log_upkeep.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

// `db` is a connection of its own: the check leaves temporary tables on it that
// hide those of the file. It may be read-only. As LogUpkeep::Check;
// `progress` is asked, and can stop the check, every `interval`.
absl::StatusOr<LogCheck> CheckIntegrity(
    Connection& db, const std::function<void(const LogFinding&)>& visit,
    const UpkeepProgress& progress, absl::Duration interval);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_INTEGRITY_H_

// Reading a log's file without changing it.
#ifndef REGATTA_STORAGE_SQLITE_LOOKING_H_
#define REGATTA_STORAGE_SQLITE_LOOKING_H_

#include <string>

#include "absl/status/status.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/log_file.h"

namespace regatta::sqlite {

// How to open it. REQUIRES: the caller has the log's lock.
Connection::Mode LookingMode(const LogFile& file);

// FailedPrecondition: a killed process left a write-ahead log, whose index
// SQLite would have to make where nothing can be made; says what to copy.
absl::Status CheckIndex(const std::string& path, const LogFile& file);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_LOOKING_H_

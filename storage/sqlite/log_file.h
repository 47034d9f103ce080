// What can be told about a tuning log's file before SQLite may touch it.
#ifndef REGATTA_STORAGE_SQLITE_LOG_FILE_H_
#define REGATTA_STORAGE_SQLITE_LOG_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta::sqlite {

// `path` with its symbolic links followed, so that one file has one lock.
// InvalidArgument: a folder or something else that is no file. NotFound,
// PermissionDenied: its folder is not there or cannot be entered, or, with
// `write`, file or folder cannot be written. FailedPrecondition: it is on a
// network file system, where SQLite's write-ahead log is not safe.
absl::StatusOr<std::string> ResolveLogPath(const std::string& path, bool write);

// Whether statfs(2)'s type is a file system that several machines can mount.
bool IsNetworkFileSystem(int64_t type);

// The tuning log, or other SQLite database, that the file at `path` is or
// belongs to (its write-ahead log, say): what must not be overwritten. nullopt:
// none. Opens and closes the file: not for one that this process has open.
std::optional<std::string> DatabaseAt(const std::string& path);

struct LogFile {
  bool exists = false;   // and has bytes: an empty file counts as none
  bool has_wal = false;  // what a process left that did not close it
};
// DataLoss: it does not begin as an SQLite database, or there is a write-ahead
// log without the file that it belongs to.
absl::StatusOr<LogFile> LookAtLogFile(const std::string& path);

// Removes the log and what belongs to it, but for its lock; what is not there
// is no error. REQUIRES: nobody has it open.
void RemoveLogFiles(const std::string& path);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_LOG_FILE_H_

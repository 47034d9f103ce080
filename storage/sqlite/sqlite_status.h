// SQLite's result codes as absl::Status.
#ifndef REGATTA_STORAGE_SQLITE_SQLITE_STATUS_H_
#define REGATTA_STORAGE_SQLITE_SQLITE_STATUS_H_

#include <sqlite3.h>

#include <string>

#include "absl/status/status.h"

namespace regatta::sqlite {

// `code` is an extended result code other than SQLITE_OK, SQLITE_ROW and
// SQLITE_DONE; `os_error` the errno behind it, 0 when there is none; `message`
// what SQLite said. The result's message begins with `path`.
//
//   disk or quota full, out of memory   ResourceExhausted
//   input or output failed, busy        Unavailable
//   not a database, malformed           DataLoss
//   no permission                       PermissionDenied
//   read-only                           FailedPrecondition
//   stopped by a StepWatch              Cancelled
//   otherwise (a bug of ours)           Internal
absl::Status SqliteStatus(int code, int os_error, const std::string& message,
                          const std::string& path);

// A system call on `path` failed with `os_error` while `doing` ("open").
absl::Status SystemStatus(int os_error, const std::string& doing,
                          const std::string& path);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_SQLITE_STATUS_H_

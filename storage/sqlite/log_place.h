// The place of a tuning log that another one is about to take.
#ifndef REGATTA_STORAGE_SQLITE_LOG_PLACE_H_
#define REGATTA_STORAGE_SQLITE_LOG_PLACE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/sqlite/file_lock.h"

namespace regatta::sqlite {

// Holds the exclusive lock of a log at its path, so that no process opens it
// meanwhile. Not thread-safe.
class LogPlace {
 public:
  // The log may be missing, or be no log. FailedPrecondition: a process has it
  // open (says who), or the path is none for a log.
  static absl::StatusOr<std::unique_ptr<LogPlace>> Hold(
      const std::string& path);
  ~LogPlace();

  // Symbolic links followed.
  const std::string& path() const { return path_; }

  // The first file that is there, of the log or of what a process that did not
  // close it left: its write-ahead log would be replayed over a new database.
  std::optional<std::string> Occupied() const;

  // What stands in the way of another log, for people: "the tuning log there
  // holds 12 record(s) and 1 job(s)". nullopt: nothing, an empty file, or a log
  // that holds nothing yet.
  std::optional<std::string> Contents() const;

  // Moves what a killed process left in the write-ahead log to the log's file,
  // so that the file alone is whole. A log that cannot be read stays as it is.
  void FoldWriteAheadLog();

  // Runs `put`, which renames a new log to path(). What the old one left goes
  // first, comes back when `put` fails and is removed when it does not.
  absl::Status Replace(const std::function<absl::Status()>& put);

 private:
  LogPlace(std::string path, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_LOG_PLACE_H_

// The lock that keeps a tuning log to one process: flock(2) on "PATH.lock" and
// on the log's own file, which may be reached by another name (a hard link).
// flock(2) does not touch the POSIX locks that SQLite uses, but closing any
// descriptor of the file drops those of the whole process: the lock must
// outlive every connection to the log.
//
// The kernel frees it when the process ends, however it ends. The file holds
// the writer's process id and note, for the message of whoever comes second; it
// means nothing without the lock, and stays behind.
#ifndef REGATTA_STORAGE_SQLITE_FILE_LOCK_H_
#define REGATTA_STORAGE_SQLITE_FILE_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace regatta::sqlite {

class FileLock {
 public:
  // For the one process that writes. `holder` says who that is, for people.
  // FailedPrecondition names who holds the lock.
  static absl::StatusOr<std::unique_ptr<FileLock>> Exclusive(
      const std::string& log_path, const std::string& holder);

  // For those that only look; they do not exclude one another. A file that
  // is made for it is removed at the end. Where none is and none can be made,
  // for want of permission or on a read-only file system, only the log's own
  // file is locked.
  static absl::StatusOr<std::unique_ptr<FileLock>> Shared(
      const std::string& log_path);

  // Locks the log's own file, which is there by now, likewise.
  // FailedPrecondition: a process holds it by another name. REQUIRES: called
  // once, before the first connection to the log.
  absl::Status LockLogFile(const std::string& log_path);

  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Notes anew who holds it. REQUIRES: exclusive, else nothing happens.
  void NameHolder(const std::string& holder);

  // The log was not opened after all: removes the file when it was made here.
  void Discard();

 private:
  FileLock(int fd, std::string path, bool exclusive, bool made)
      : fd_(fd), path_(std::move(path)), exclusive_(exclusive), made_(made) {}

  int fd_;           // of PATH.lock; -1: nothing to lock
  int log_fd_ = -1;  // of the log; -1: not locked yet
  std::string path_;
  bool exclusive_;
  bool made_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_FILE_LOCK_H_

// Notices that a file which a process holds open is not in its place any more:
// deleted, moved away, or another put there. What is written then is lost when
// the process ends.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_STORAGE_SQLITE_FILE_WATCH_H_
#define REGATTA_STORAGE_SQLITE_FILE_WATCH_H_

#include <sys/stat.h>

#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace regatta::sqlite {

class FileWatch {
 public:
  // The log at `path` is there and open. Its write-ahead log is watched from
  // the first Check that finds one.
  explicit FileWatch(std::string path);

  // FailedPrecondition says what is gone and what to do; OK again once the very
  // file is back. A few system calls, no reading.
  absl::Status Check();

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static std::optional<Identity> Look(const std::string& path);

  const std::string path_;
  const std::string wal_path_;
  const std::optional<Identity> file_;
  std::mutex mutex_;
  std::optional<Identity> wal_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_FILE_WATCH_H_

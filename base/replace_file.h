// Small files that are whole or not there: written beside, synced, renamed.
#ifndef REGATTA_BASE_REPLACE_FILE_H_
#define REGATTA_BASE_REPLACE_FILE_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

// A file that is written beside `path` and takes its place when it is whole;
// what is beside goes with this object, or, after a crash, when the next one of
// the same name is made.
//
// Not thread-safe. Methods return 0, or the system's error.
class FileBeside {
 public:
  // `beside`: where it is written, in the same folder.
  FileBeside(std::string path, std::string beside)
      : path_(std::move(path)), beside_(std::move(beside)) {}
  ~FileBeside();
  FileBeside(const FileBeside&) = delete;

  // For reading and appending, with exactly this mode; `masked`: less what the
  // process's umask takes away.
  int Open(mode_t mode, bool masked = false);
  int Append(std::string_view bytes);
  int Sync();
  int fd() const { return file_.get(); }  // -1 before Open
  // Renames; durable only once the folder is, and whole after a power failure
  // only when it was synced before.
  int Commit();
  // The file at `path` after Commit, open.
  UniqueFd Take() { return std::move(file_); }

 private:
  const std::string path_, beside_;
  UniqueFd file_;
  bool there_ = false;
};

// Puts `bytes` at `path` with exactly this mode; durable when it returns OK. A
// reader sees the old bytes or the new ones. The error names the path and the
// system's reason; the old file then stands.
absl::Status ReplaceFile(const std::string& path, std::string_view bytes,
                         mode_t mode);

// All of a small file. NotFound where there is none; ResourceExhausted beyond
// `max_bytes`; other errors are Unavailable. Messages name the path.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t max_bytes = 1 << 20);

// The same of an open one; `path` is for messages.
absl::StatusOr<std::string> ReadSmallFile(int fd, const std::string& path,
                                          size_t max_bytes = 1 << 20);

}  // namespace regatta

#endif  // REGATTA_BASE_REPLACE_FILE_H_

#include "storage/sqlite/looking.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace regatta::sqlite {

// Without a write-ahead log the file holds everything, and as the caller has
// the lock nobody changes it.
Connection::Mode LookingMode(const LogFile& file) {
  return file.has_wal ? Connection::Mode::kReadOnly
                      : Connection::Mode::kImmutable;
}

// A write-ahead log is read through an index, PATH-shm, which SQLite must make
// where it is missing.
absl::Status CheckIndex(const std::string& path, const LogFile& file) {
  const std::string index = absl::StrCat(path, "-shm");
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!file.has_wal || access(index.c_str(), F_OK) == 0 ||
      faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": a process that did not close it left records in ", path,
      "-wal; to read them SQLite needs ", index,
      ", which cannot be made in this folder: copy ", path, " and ", path,
      "-wal to a folder that can be written, and open the copy"));
}

}  // namespace regatta::sqlite

#include "base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sync_path.h"
#include "base/system_error.h"
#include "base/write_all.h"

namespace regatta {

FileBeside::~FileBeside() {
  if (there_) unlink(beside_.c_str());
}

int FileBeside::Open(mode_t mode, bool masked) {
  // Left by a crash, or put there by somebody who wants the bytes elsewhere.
  unlink(beside_.c_str());
  file_.Reset(
      open(beside_.c_str(),
           O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
           masked ? mode : mode & 0700));
  if (!file_.valid()) return errno;
  there_ = true;
  if (masked) return 0;
  // The mask of the process must not widen or narrow it.
  return fchmod(file_.get(), mode) == 0 ? 0 : errno;
}

int FileBeside::Append(std::string_view bytes) {
  return WriteAll(file_.get(), bytes);
}

int FileBeside::Sync() { return fsync(file_.get()) == 0 ? 0 : errno; }

int FileBeside::Commit() {
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) return errno;
  there_ = false;
  return 0;
}

absl::Status ReplaceFile(const std::string& path, std::string_view bytes,
                         mode_t mode) {
  FileBeside file(path, absl::StrCat(path, ".", getpid(), ".tmp"));
  int error = file.Open(mode);
  if (error == 0) error = file.Append(bytes);
  if (error == 0) error = file.Sync();
  if (error == 0) error = file.Commit();
  if (error == 0) error = SyncFolderOf(path);
  return error == 0 ? absl::OkStatus() : SystemError(path, "write", error);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t max_bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    const std::string why =
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(why)
                           : absl::UnavailableError(why);
  }
  return ReadSmallFile(fd.get(), path, max_bytes);
}

absl::StatusOr<std::string> ReadSmallFile(int fd, const std::string& path,
                                          size_t max_bytes) {
  std::string bytes;
  char buffer[16 << 10];
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
    }
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
    if (bytes.size() > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " has more than ", max_bytes, " bytes"));
    }
  }
}

}  // namespace regatta

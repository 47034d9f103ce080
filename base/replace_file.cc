#include "base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sync_path.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace regatta {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, std::string_view bytes,
                         mode_t mode) {
  const std::string beside = absl::StrCat(path, ".", getpid(), ".tmp");
  // Left by a crash, or put there by somebody who wants the bytes elsewhere.
  unlink(beside.c_str());
  UniqueFd fd(open(beside.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   mode & 0700));
  if (!fd.valid()) return CannotWrite(path, errno);
  // The mask of the process must not widen or narrow it.
  int error = fchmod(fd.get(), mode) == 0 ? 0 : errno;
  if (error == 0) error = WriteAll(fd.get(), bytes);
  if (error == 0 && fsync(fd.get()) != 0) error = errno;
  fd.Reset();
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) unlink(beside.c_str());
  if (error == 0) error = SyncFolderOf(path);
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
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

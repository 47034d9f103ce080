#include "client/cli/file_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace regatta::cli {

absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, bool executable) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".new");
  auto failed = [&] {
    const int error = errno;
    unlink(temporary.c_str());
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
  };
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      executable ? 0755 : 0644);
  if (fd < 0) return failed();
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      close(fd);
      errno = error;
      return failed();
    }
    bytes.remove_prefix(written);
  }
  if (close(fd) != 0 || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return failed();
  }
  return absl::OkStatus();
}

}  // namespace regatta::cli

#include "device_agent/measure/timing_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

absl::Status LockError(const char* what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what,
                                             " the timing lock ", path, ": ",
                                             std::strerror(errno)));
}

}  // namespace

absl::StatusOr<TimingLock> TimingLock::Acquire(const std::string& path) {
  // Reading is enough for a lock, so another user's file will do. Opened before
  // created, because folders that everyone may write to refuse O_CREAT on a file
  // of somebody else.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) {
    fd = open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  }
  if (fd < 0) return LockError("open", path);
  TimingLock lock(fd);
  while (flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) return LockError("take", path);
  }
  return lock;
}

TimingLock::~TimingLock() {
  if (fd_ >= 0) close(fd_);
}

std::string DefaultTimingLockPath() {
  if (access("/run/lock", W_OK | X_OK) == 0) {
    return "/run/lock/regatta-timing.lock";
  }
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/tmp";
  return absl::StrCat(folder, "/regatta-timing-", getuid(), ".lock");
}

}  // namespace regatta

#include "tests/chaos/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace regatta::testing {

absl::Status OwnMounts() {
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("mounts of its own: ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status SmallDisk::Mount(int64_t bytes) {
  const std::string options = absl::StrCat("mode=0700,size=", bytes);
  if (mount("regatta-chaos", folder_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
            options.c_str()) != 0) {
    return absl::InternalError(
        absl::StrCat("mounting ", folder_, ": ", strerror(errno)));
  }
  return absl::OkStatus();
}

void SmallDisk::Fill() {
  const UniqueFd file(
      open(ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string block(64 << 10, 'x');
  while (write(file.get(), block.data(), block.size()) > 0) {
  }
}

void SmallDisk::Free() { unlink(ballast().c_str()); }

}  // namespace regatta::testing

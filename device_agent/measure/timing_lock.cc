#include "device_agent/measure/timing_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "device_agent/measure/trial_runner.h"

namespace regatta {
namespace {

constexpr int kRetryMs = 20;
constexpr char kSystemFolder[] = "/run/lock";
constexpr char kName[] = "/regatta-timing.lock";

}  // namespace

std::string DefaultTimingLockPath() {
  const bool usable = access(kSystemFolder, W_OK | X_OK) == 0;
  return absl::StrCat(usable ? kSystemFolder : "/tmp", kName);
}

TimingLock::Held::~Held() {
  // Explicitly: the spawner may hold a copy a moment longer.
  if (file_.valid()) flock(file_.get(), LOCK_UN);
}

absl::StatusOr<TimingLock::Held> TimingLock::Take(
    const std::function<bool()>& cancelled) const {
  if (path_.empty()) return Held(UniqueFd());
  // Every user of the host must be able to take it.
  UniqueFd file(
      open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.valid()) {
    fchmod(file.get(), 0666);
  } else if (errno == EACCES) {
    file.Reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  }
  if (!file.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("timing lock ", path_, ": ", strerror(errno)));
  }
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::FailedPreconditionError(
          absl::StrCat("timing lock ", path_, ": ", strerror(errno)));
    }
    if (cancelled()) return absl::CancelledError("stopped");
    poll(nullptr, 0, kRetryMs);
  }
  return Held(std::move(file));
}

}  // namespace regatta

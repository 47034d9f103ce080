// One timed run at a time on cores that several processes use: the host-wide
// timing lock, an advisory lock on a file. It is held while something is timed
// and let go by the kernel when its holder dies.
//
// Thread-safe; two holders in one process exclude each other, too.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_TIMING_LOCK_H_
#define REGATTA_DEVICE_AGENT_MEASURE_TIMING_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace regatta {

class TimingLock {
 public:
  // Waits until the lock is free. The file is made when missing. An error names
  // the file.
  static absl::StatusOr<TimingLock> Acquire(const std::string& path);

  TimingLock(TimingLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TimingLock& operator=(TimingLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TimingLock();  // lets go

 private:
  explicit TimingLock(int fd) : fd_(fd) {}
  int fd_;
};

// Where every Regatta program of this host looks unless told otherwise:
// /run/lock/regatta-timing.lock, or, where /run/lock cannot be written,
// regatta-timing-UID.lock in $TMPDIR (/tmp).
std::string DefaultTimingLockPath();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_TIMING_LOCK_H_

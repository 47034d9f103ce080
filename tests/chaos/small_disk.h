// A folder on a disk of its own that is small and can be full: memory (tmpfs),
// mounted where this process and its children alone see it.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_CHAOS_SMALL_DISK_H_
#define REGATTA_TESTS_CHAOS_SMALL_DISK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace regatta::testing {

// Gives this process, and those that it starts from now on, mounts of their
// own, which end with the last of them. Once, before any thread.
// FailedPrecondition without the right to.
absl::Status OwnMounts();

class SmallDisk {
 public:
  // An ordinary folder until Mount.
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {}

  // REQUIRES: OwnMounts succeeded. Internal names what failed.
  absl::Status Mount(int64_t bytes);
  // Takes the last byte that is free; again, where some became free. REQUIRES:
  // mounted.
  void Fill();
  // Gives it back.
  void Free();

 private:
  std::string ballast() const { return folder_ + "/ballast"; }

  const std::string folder_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_SMALL_DISK_H_

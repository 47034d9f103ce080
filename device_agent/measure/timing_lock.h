// One timed run at a time on a host, whichever agent or program asks: a lock on
// a file. The kernel gives it back when its last holder is gone; a run worker's
// spawner holds a copy for as long as the worker lives.
//
// Not thread-safe: one object per timing thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_TIMING_LOCK_H_
#define REGATTA_DEVICE_AGENT_MEASURE_TIMING_LOCK_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/spawner/unique_fd.h"

namespace regatta {

class TimingLock {
 public:
  // Held until destroyed.
  class Held {
   public:
    explicit Held(UniqueFd file) : file_(std::move(file)) {}
    Held(Held&&) = default;
    ~Held();
    int fd() const { return file_.get(); }

   private:
    UniqueFd file_;
  };

  // "": no lock is needed. The file is made when it is not there.
  explicit TimingLock(std::string path) : path_(std::move(path)) {}

  // Waits for it. Cancelled as soon as `cancelled` says so (asked every 20 ms);
  // FailedPrecondition when the file cannot be opened.
  absl::StatusOr<Held> Take(const std::function<bool()>& cancelled) const;

 private:
  const std::string path_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_TIMING_LOCK_H_

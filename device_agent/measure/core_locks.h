// Who may use which processor of this host now: a timed run has its cores for
// itself, whichever agent or program asks; builds share theirs with one another
// but not with a timed run. So no build disturbs a timed run, and both overlap
// otherwise.
//
// Per processor there are two files, locked with flock(2), so that the kernel
// gives a lock back when its last holder is gone, however it went:
//   regatta-cpu-N.lock  held by who uses the processor: shared by builds,
//                       exclusively by a timed run
//   regatta-cpu-N.turn  held while waiting for the former. Who gives the
//                       processor back and wants it again queues here behind
//                       those who wait, so neither a row of timed runs nor
//                       overlapping builds can keep the other out.
//
// Every user of the host can take part: the files are only read and belong to
// whom they may. They are advisory: a program that does not ask is not kept
// out. Containers take part when they share the folder.
//
// Thread-safe: two takers of one process exclude each other too.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_CORE_LOCKS_H_
#define REGATTA_DEVICE_AGENT_MEASURE_CORE_LOCKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

class CoreLocks {
 public:
  enum class Use { kBuild, kTiming };

  // Held until destroyed, and by who was given copies of fds() for as long as
  // it keeps them: unlocking would free the cores below a run worker that
  // outlived its killing. A build worker lives on between the builds that hold
  // its core, so what outlives the killing of one is not kept out.
  class Held {
   public:
    explicit Held(std::vector<UniqueFd> files) : files_(std::move(files)) {}
    // For a process that shall keep them too, such as a run worker's spawner.
    std::vector<int> fds() const;

   private:
    std::vector<UniqueFd> files_;
  };

  // `folder`: of the lock files; the same for all programs of a host.
  explicit CoreLocks(std::string folder) : folder_(std::move(folder)) {}

  // FailedPrecondition naming the file, when one of `cpus` cannot be locked
  // here.
  absl::Status Check(const std::vector<int>& cpus) const;

  // Waits until all are free. Cancelled soon after `cancelled` says so;
  // FailedPrecondition as Check. REQUIRES: ascending, so that no two takers
  // wait for each other.
  absl::StatusOr<Held> Take(const std::vector<int>& cpus, Use use,
                            const std::function<bool()>& cancelled) const;

 private:
  absl::StatusOr<UniqueFd> Lock(int cpu, const char* suffix, int operation,
                                const std::function<bool()>& cancelled) const;
  std::string Path(int cpu, const char* suffix) const;

  const std::string folder_;
};

// The folder that all programs of a host use unless told otherwise: /run/lock
// where every user may write, else /tmp. The same for every user.
std::string DefaultLockFolder();

// How a device's processors are shared out: timed runs have the last ones,
// build thread i the one at position i.
struct CorePlan {
  static constexpr int kMaxBuilders = 4;
  // REQUIRES: not empty, ascending.
  explicit CorePlan(std::vector<int> cpus);
  int builders() const;
  int BuildCpu(int builder) const { return cpus[builder]; }
  // REQUIRES: 1 <= threads <= cpus.size().
  std::vector<int> TimingCpus(int threads) const;

  std::vector<int> cpus;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_CORE_LOCKS_H_

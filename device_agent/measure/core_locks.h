// Who may use which processor now: a timed run takes its cores, a build takes
// its one, so that no build disturbs a timed run and both overlap otherwise.
//
// Thread-safe.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_CORE_LOCKS_H_
#define REGATTA_DEVICE_AGENT_MEASURE_CORE_LOCKS_H_

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace regatta {

class CoreLocks {
 public:
  using Held = std::vector<std::unique_lock<std::mutex>>;

  // REQUIRES: `cpus` covers every processor that is asked for later.
  explicit CoreLocks(const std::vector<int>& cpus) {
    for (int cpu : cpus) mutexes_[cpu] = std::make_unique<std::mutex>();
  }
  // Waits until all are free. REQUIRES: ascending, so that no two takers wait
  // for each other.
  Held Take(const std::vector<int>& cpus) {
    Held held;
    for (int cpu : cpus) held.emplace_back(*mutexes_.at(cpu));
    return held;
  }

 private:
  std::map<int, std::unique_ptr<std::mutex>> mutexes_;
};

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

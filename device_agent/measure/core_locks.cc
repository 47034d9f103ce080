#include "device_agent/measure/core_locks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace regatta {

CorePlan::CorePlan(std::vector<int> all) : cpus(std::move(all)) {
  CHECK(!cpus.empty() && std::is_sorted(cpus.begin(), cpus.end()));
}

int CorePlan::builders() const {
  // One core is left for the usual timed run of one thread.
  return std::clamp(static_cast<int>(cpus.size()) - 1, 1, kMaxBuilders);
}

std::vector<int> CorePlan::TimingCpus(int threads) const {
  CHECK(threads >= 1 && threads <= static_cast<int>(cpus.size())) << threads;
  return std::vector<int>(cpus.end() - threads, cpus.end());
}

}  // namespace regatta

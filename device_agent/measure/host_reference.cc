#include "device_agent/measure/host_reference.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <thread>

namespace regatta {

std::optional<double> HostReference::Time() {
  std::optional<double> best;
  std::thread timing([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu_), &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) return;
    if (iterations_ == 0) iterations_ = CalibrateFma(kernel_, kBlockNs);
    TimeFma(kernel_, iterations_);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < kBlocks; ++i) {
      least = std::min(least, TimeFma(kernel_, iterations_));
    }
    best = static_cast<double>(least);
  });
  timing.join();
  return best;
}

}  // namespace regatta

#include "storage/time_interval.h"

#include <cmath>
#include <vector>

#include "base/robust_stats.h"
#include "proto/block_time.h"

namespace regatta {

std::optional<std::pair<int64_t, int64_t>> TimeInterval(
    const v1::TrialResult& result) {
  constexpr size_t kFewest = 6;
  std::vector<double> times;
  for (const v1::Block& block : result.blocks()) {
    if (block.throttled() || block.calls() <= 0) continue;
    times.push_back(NsPerCall(block));
  }
  if (times.size() < kFewest) return std::nullopt;
  const Interval interval = MedianInterval95(std::move(times));
  return std::make_pair(static_cast<int64_t>(std::floor(interval.low)),
                        static_cast<int64_t>(std::ceil(interval.high)));
}

}  // namespace regatta

#include "device_agent/probe/probe_history.h"

#include <algorithm>
#include <vector>

#include "base/robust_stats.h"

namespace regatta {

void ProbeHistory::Add(const CpuProbeResult& result) {
  const bool first = !answer_.has_value();
  const bool undisturbed = Undisturbed(result);
  CpuProbeResult merged = first ? result : *answer_;
  if (!first) {
    merged.peak_flops_per_s =
        std::max(merged.peak_flops_per_s, result.peak_flops_per_s);
    merged.bandwidth_bytes_per_s =
        std::max(merged.bandwidth_bytes_per_s, result.bandwidth_bytes_per_s);
    if (undisturbed || noise_.empty()) merged.caches = result.caches;
  }
  if (undisturbed) {
    noise_.push_back(result.noise_floor);
    if (noise_.size() > kKept) noise_.pop_front();
  }
  merged.noise_floor =
      noise_.empty()
          ? std::min(merged.noise_floor, result.noise_floor)
          : Median(std::vector<double>(noise_.begin(), noise_.end()));
  answer_ = merged;
}

std::optional<CpuProbeResult> ProbeHistory::Answer() const { return answer_; }

}  // namespace regatta

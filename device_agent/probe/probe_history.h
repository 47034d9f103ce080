// Several probes of one device made into one answer: a busy machine measures
// badly, and it is not busy for ever.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_PROBE_PROBE_HISTORY_H_
#define REGATTA_DEVICE_AGENT_PROBE_PROBE_HISTORY_H_

#include <deque>
#include <optional>

#include "device_agent/probe/cpu_probe.h"

namespace regatta {

class ProbeHistory {
 public:
  // Undisturbed probes that count; older ones are forgotten.
  static constexpr size_t kKept = 5;

  void Add(const CpuProbeResult& result);

  // Absent before the first Add. Noise floor: the median of the undisturbed
  // probes, else the least of the disturbed ones, which Undisturbed then tells.
  // Peak and bandwidth: the best seen, since nothing makes a core faster than
  // it is. Caches: of the latest undisturbed probe, else of the latest.
  std::optional<CpuProbeResult> Answer() const;

 private:
  std::deque<double> noise_;  // of undisturbed probes, oldest first
  std::optional<CpuProbeResult> answer_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_PROBE_HISTORY_H_

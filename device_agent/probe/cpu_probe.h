// Measures what a device's cores can do: cache sizes, read bandwidth, peak
// multiply-adds, and how far two timings of one thing differ. Takes about three
// seconds on an idle machine.
//
// The results are hints (defaults, search order, plausibility, what is shown to
// people), never part of a key.
#ifndef REGATTA_DEVICE_AGENT_PROBE_CPU_PROBE_H_
#define REGATTA_DEVICE_AGENT_PROBE_CPU_PROBE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/probe/cache_levels.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

struct CpuProbeResult {
  CacheSizes caches;
  double peak_flops_per_s = 0;       // f32, one core
  double bandwidth_bytes_per_s = 0;  // read, one core, beyond the caches
  double noise_floor = 0;            // as a fraction
  std::string fma_kernel;            // which instructions gave the peak
};

struct CpuProbeOptions {
  int cpu = 0;               // where to run
  int64_t memory_bytes = 0;  // of the machine: at most an eighth is touched
  uint64_t seed = 1;         // of the order of the loads
  // Runs one part, of at most two seconds, while nothing is timed on these
  // cores.
  std::function<absl::Status(const std::function<void()>& part)> exclusively;
  // Ends the probe early when set.
  const std::atomic<bool>* stop = nullptr;
};

// Blocks; pins the calling thread to `cpu`, so give it one of its own.
// Cancelled when stopped, else what `exclusively` or the system failed with.
absl::StatusOr<CpuProbeResult> ProbeCpu(const CpuProbeOptions& options);

// False when the cores were busy with something else, which shows as a noise
// floor above 10 %: the floor is then unknown, and the rest is good enough to
// show, not to keep.
bool Undisturbed(const CpuProbeResult& result);

// The noise floor only where it is known.
void FillDevice(const CpuProbeResult& result, v1::DeviceInfo& device);

// What the last probe of `subject` (a processor list, a device) on this boot
// found, so that a restarted agent need not measure again. Text, one file.
absl::StatusOr<CpuProbeResult> LoadProbe(const std::string& path,
                                         const std::string& boot_id,
                                         const std::string& subject);
absl::Status SaveProbe(const std::string& path, const std::string& boot_id,
                       const std::string& subject,
                       const CpuProbeResult& result);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_CPU_PROBE_H_

// Probes a device's cores on a thread of its own and keeps an eye on their
// health, so that the device can be registered at once.
//
// Thread-safe. The callback comes from the probe's thread.
#ifndef REGATTA_DEVICE_AGENT_PROBE_BACKGROUND_PROBE_H_
#define REGATTA_DEVICE_AGENT_PROBE_BACKGROUND_PROBE_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device_agent/probe/cpu_probe.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

class BackgroundProbe {
 public:
  struct Options {
    v1::DeviceInfo device;  // as registered; what is probed is filled in
    std::vector<int> cpus;
    std::string boot_id;
    std::string cache_path;  // of LoadProbe and SaveProbe
    // Runs a part of the probe while nothing is timed on these cores; gives up,
    // Cancelled, as soon as `stopped` says so while it waits.
    std::function<absl::Status(const std::function<void()>& part,
                               const std::function<bool()>& stopped)>
        exclusively;
    std::string root;  // "" outside tests
    absl::Duration health_period = absl::Minutes(1);
    // The device as it is now: once when probing ended, then whenever its
    // health changes.
    std::function<void(v1::DeviceInfo)> on_change;
    // ProbeCpu outside tests.
    std::function<absl::StatusOr<CpuProbeResult>(const CpuProbeOptions&)>
        probe = ProbeCpu;
  };

  // Starts the thread.
  explicit BackgroundProbe(Options options);
  // Ends it; a part of a probe that is under way is finished first.
  ~BackgroundProbe();

 private:
  void Run();
  // Of this boot, or measured now.
  absl::StatusOr<CpuProbeResult> Obtain();

  const Options options_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_BACKGROUND_PROBE_H_

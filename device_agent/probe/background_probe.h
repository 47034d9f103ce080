// Probes a device's cores on a thread of its own and keeps an eye on their
// health, so that the device can be registered at once.
//
// What a busy machine showed is measured again: after each of `retry_after`,
// the last of them for ever. What is known is measured again every
// `refresh_after`; the answer is that of ProbeHistory. A probe holds the core
// for at most two seconds at a time.
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
#include "base/clock.h"
#include "device_agent/probe/clock_control.h"
#include "device_agent/probe/cpu_probe.h"
#include "device_agent/probe/probe_history.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

class BackgroundProbe {
 public:
  struct Options {
    v1::DeviceInfo device;  // as registered; what is probed is filled in
    std::vector<int> cpus;
    std::string boot_id;
    std::string cache_path;  // of LoadProbe and SaveProbe
    std::string subject;     // likewise: what was found holds for this only
    // Runs a part of the probe while nothing is timed on these cores; gives up,
    // Cancelled, as soon as `stopped` says so while it waits.
    std::function<absl::Status(const std::function<void()>& part,
                               const std::function<bool()>& stopped)>
        exclusively;
    std::string root;    // "" outside tests
    ClockPolicy clocks;  // that health is judged by
    absl::Duration health_period = absl::Minutes(1);
    std::vector<absl::Duration> retry_after = {
        absl::Minutes(1), absl::Minutes(5), absl::Minutes(15)};
    absl::Duration refresh_after = absl::Minutes(60);
    const Clock* clock = &RealClock();  // outlives the probe
    // The device as it is now: once when probing ended, then whenever its
    // health or what is known of it changes.
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
  // Remembers what was found and when to measure again.
  void Note(const absl::StatusOr<CpuProbeResult>& found);
  absl::StatusOr<CpuProbeResult> Measure();
  // The device as it is known now.
  v1::DeviceInfo Describe() const;

  const Options options_;
  // The thread's own:
  ProbeHistory history_;
  absl::Status failure_;  // of the latest probe
  size_t disturbed_ = 0;  // probes in a row
  SteadyTime measure_at_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_BACKGROUND_PROBE_H_

// Probes all devices of an agent in the background, each in its kind's way, and
// tells what becomes known.
//
// Thread-safe. Callbacks come from the probes' threads, one at a time.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_DEVICE_PROBES_H_
#define REGATTA_DEVICE_AGENT_DEVICES_DEVICE_PROBES_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device_agent/devices/device_provider.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/probe/background_probe.h"
#include "proto/device_build.h"

namespace regatta {

class DeviceProbes {
 public:
  struct Options {
    Board board;
    std::vector<FoundDevice> devices;
    std::string state_dir;    // keeps what was found until the next boot
    std::string lock_folder;  // of CoreLocks
    // A device as it is now, and all of them, in the order of `devices`.
    std::function<void(const v1::DeviceInfo&)> on_device;
    std::function<void(const std::vector<v1::DeviceInfo>&)> on_devices;
  };

  // Starts the threads.
  explicit DeviceProbes(Options options);
  // Ends them; a part of a probe that is under way is finished first.
  ~DeviceProbes();

  // Who builds for a device does it otherwise from now on.
  void SetBuild(const std::string& device_id, DeviceBuild build);
  // How measuring on a device goes. Unknown devices are ignored.
  void SetMeasuring(const std::string& device_id, const MeasuringState& state);

 private:
  BackgroundProbe::Options ProbeOptions(size_t index);
  void Update(size_t index, v1::DeviceInfo device);
  // With mutex_ held: what measuring showed, beside what was probed.
  void AddMeasuring(v1::DeviceInfo* device) const;

  const Options options_;
  const CoreLocks locks_;
  std::mutex mutex_;
  std::vector<v1::DeviceInfo> devices_;              // as they are now
  std::map<std::string, DeviceBuild> builds_;        // that SetBuild told
  std::map<std::string, MeasuringState> measuring_;  // likewise
  std::vector<std::unique_ptr<BackgroundProbe>> probes_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_DEVICE_PROBES_H_

#include "device_agent/devices/device_probes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "device_agent/spawner/cpu_list.h"

namespace regatta {

DeviceProbes::DeviceProbes(Options options)
    : options_(std::move(options)), locks_(options_.lock_folder) {
  for (const FoundDevice& device : options_.devices) {
    devices_.push_back(device.served.info);
  }
  for (size_t i = 0; i < options_.devices.size(); ++i) {
    probes_.push_back(std::make_unique<BackgroundProbe>(ProbeOptions(i)));
  }
}

DeviceProbes::~DeviceProbes() { probes_.clear(); }

BackgroundProbe::Options DeviceProbes::ProbeOptions(size_t index) {
  const FoundDevice& device = options_.devices[index];
  const ServedDevice& served = device.served;
  const absl::StatusOr<std::vector<int>> cpus =
      ParseCpuList(served.info.cpu_list());
  CHECK(cpus.ok() && !cpus->empty()) << served.info.cpu_list();
  BackgroundProbe::Options probe;
  probe.device = served.info;
  probe.cpus = *cpus;
  probe.clocks = options_.board.clocks;
  probe.boot_id = options_.board.machine.boot_id;
  probe.cache_path = absl::StrCat(
      options_.state_dir, "/probe",
      served.on_host() ? "" : absl::StrCat("-", served.info.device_id()));
  probe.subject = served.on_host()
                      ? served.info.cpu_list()
                      : absl::StrCat(served.info.cpu_list(), " ",
                                     served.info.device_class(), " ",
                                     served.info.driver_version());
  const std::vector<int> locked =
      served.needs.all_cores ? *cpus : std::vector<int>{cpus->back()};
  probe.exclusively = [this, locked](const std::function<void()>& part,
                                     const std::function<bool()>& stopped) {
    ASSIGN_OR_RETURN(const CoreLocks::Held held,
                     locks_.Take(locked, CoreLocks::Use::kTiming, stopped));
    part();
    return absl::OkStatus();
  };
  probe.probe = [this, &device](const CpuProbeOptions& options) {
    return device.provider->Probe(options_.board, device.served, options);
  };
  probe.on_change = [this, index](v1::DeviceInfo now) {
    Update(index, std::move(now));
  };
  return probe;
}

void DeviceProbes::Update(size_t index, v1::DeviceInfo device) {
  std::lock_guard lock(mutex_);
  // The probe knows the device as it was found.
  if (const auto told = builds_.find(device.device_id());
      told != builds_.end()) {
    SetBuildOf(told->second, device);
  }
  AddMeasuring(&device);
  devices_[index] = std::move(device);
  options_.on_device(devices_[index]);
  options_.on_devices(devices_);
}

void DeviceProbes::AddMeasuring(v1::DeviceInfo* device) const {
  const auto found = measuring_.find(device->device_id());
  if (found == measuring_.end()) return;
  const MeasuringState& state = found->second;
  device->set_sessions_closed(state.sessions_closed);
  device->set_throttled_blocks(state.throttled_blocks);
}

void DeviceProbes::SetMeasuring(const std::string& device_id,
                                const MeasuringState& state) {
  std::lock_guard lock(mutex_);
  measuring_[device_id] = state;
  for (v1::DeviceInfo& device : devices_) {
    if (device.device_id() == device_id) AddMeasuring(&device);
  }
  options_.on_devices(devices_);
}

void DeviceProbes::SetBuild(const std::string& device_id, DeviceBuild build) {
  std::lock_guard lock(mutex_);
  for (v1::DeviceInfo& device : devices_) {
    if (device.device_id() == device_id) SetBuildOf(build, device);
  }
  builds_[device_id] = std::move(build);
  options_.on_devices(devices_);
}

}  // namespace regatta

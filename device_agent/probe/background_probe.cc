#include "device_agent/probe/background_probe.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/probe/machine.h"

namespace regatta {

BackgroundProbe::BackgroundProbe(Options options)
    : options_(std::move(options)) {
  thread_ = std::thread([this] { Run(); });
}

BackgroundProbe::~BackgroundProbe() {
  stop_ = true;
  {
    // Or the thread could miss it between looking and waiting.
    std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
  thread_.join();
}

absl::StatusOr<CpuProbeResult> BackgroundProbe::Obtain() {
  const std::string& cpu_list = options_.device.cpu_list();
  absl::StatusOr<CpuProbeResult> known =
      LoadProbe(options_.cache_path, options_.boot_id, cpu_list);
  if (known.ok()) return known;
  CpuProbeOptions probe;
  // The first core of a machine has most of the interrupts.
  probe.cpu = options_.cpus.back();
  probe.memory_bytes = options_.device.memory_bytes();
  probe.stop = &stop_;
  probe.exclusively = [this](const std::function<void()>& part) {
    return options_.exclusively(part, [this] { return stop_.load(); });
  };
  ASSIGN_OR_RETURN(CpuProbeResult result, options_.probe(probe));
  if (!Undisturbed(result)) {
    LOG(kWarning) << "the machine was busy while it was probed; the next start "
                     "probes again";
  } else if (absl::Status saved = SaveProbe(options_.cache_path,
                                            options_.boot_id, cpu_list, result);
             !saved.ok()) {
    LOG(kWarning) << saved.message() << "; the next start probes again";
  }
  return result;
}

void BackgroundProbe::Run() {
  v1::DeviceInfo device = options_.device;
  const absl::StatusOr<CpuProbeResult> result = Obtain();
  if (stop_) return;
  std::string trouble;
  if (result.ok()) {
    FillDevice(*result, device);
    LOG(kInfo) << "probed: L1 " << device.l1_bytes() / 1024 << " KiB, L2 "
               << device.l2_bytes() / 1024 << " KiB, L3 "
               << device.l3_bytes() / 1024 << " KiB, peak "
               << device.peak_flops_per_s() / 1e9
               << " GFLOP/s f32 per core, read "
               << device.bandwidth_bytes_per_s() / 1e9 << " GB/s, noise floor "
               << device.noise_floor() * 100 << " %";
  } else {
    LOG(kWarning) << "probing failed: " << result.status().message();
    trouble =
        absl::StrCat("; not probed: ", std::string(result.status().message()));
  }
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::string health = HealthOf(options_.root, options_.cpus) + trouble;
    if (health != device.health()) {
      device.set_health(health);
      options_.on_change(device);
    }
    wake_.wait_for(lock, absl::ToChronoNanoseconds(options_.health_period),
                   [this] { return stop_.load(); });
  }
}

}  // namespace regatta

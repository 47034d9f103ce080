#include "device_agent/probe/background_probe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"

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

absl::StatusOr<CpuProbeResult> BackgroundProbe::Measure() {
  CpuProbeOptions probe;
  // The first core of a machine has most of the interrupts.
  probe.cpu = options_.cpus.back();
  probe.memory_bytes = options_.device.memory_bytes();
  probe.stop = &stop_;
  probe.exclusively = [this](const std::function<void()>& part) {
    return options_.exclusively(part, [this] { return stop_.load(); });
  };
  return options_.probe(probe);
}

void BackgroundProbe::Note(const absl::StatusOr<CpuProbeResult>& found) {
  failure_ = found.status();
  if (found.ok()) history_.Add(*found);
  absl::Duration wait = options_.refresh_after;
  if (found.ok() && Undisturbed(*found)) {
    disturbed_ = 0;
    const absl::Status saved = SaveProbe(options_.cache_path, options_.boot_id,
                                         options_.subject, *history_.Answer());
    if (!saved.ok()) {
      LOG(kWarning) << saved.message() << "; the next start probes again";
    }
  } else {
    const std::vector<absl::Duration>& waits = options_.retry_after;
    wait = waits[std::min(disturbed_++, waits.size() - 1)];
    LOG(kWarning) << (found.ok()
                          ? absl::StrFormat("the machine was busy while it was "
                                            "probed (noise %.0f %%)",
                                            found->noise_floor * 100)
                          : absl::StrCat("probing failed: ",
                                         found.status().message()))
                  << "; probing again in " << absl::FormatDuration(wait);
  }
  measure_at_ = options_.clock->Steady() + wait;
}

v1::DeviceInfo BackgroundProbe::Describe() const {
  v1::DeviceInfo device = options_.device;
  device.set_uncontrolled(
      UncontrolledClocks(options_.root, options_.cpus, options_.clocks));
  std::string health = HealthOf(device.uncontrolled());
  if (const auto answer = history_.Answer()) {
    FillDevice(*answer, device);
  } else if (!failure_.ok()) {
    const std::string why = absl::StrCat("not probed: ", failure_.message());
    health = device.uncontrolled().empty() ? why : health + "; " + why;
  }
  device.set_health(health);
  return device;
}

void BackgroundProbe::Run() {
  const absl::StatusOr<CpuProbeResult> known =
      LoadProbe(options_.cache_path, options_.boot_id, options_.subject);
  Note(known.ok() ? known : Measure());
  std::string told;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const v1::DeviceInfo device = Describe();
    if (const std::string now = device.SerializeAsString(); now != told) {
      told = now;
      LOG(kInfo) << "probed " << device.device_class() << ": L1 "
                 << device.l1_bytes() / 1024 << " KiB, L2 "
                 << device.l2_bytes() / 1024 << " KiB, L3 "
                 << device.l3_bytes() / 1024 << " KiB, peak "
                 << device.peak_flops_per_s() / 1e9 << " GFLOP/s f32, read "
                 << device.bandwidth_bytes_per_s() / 1e9
                 << " GB/s, noise floor " << device.noise_floor() * 100
                 << " %, health " << device.health();
      options_.on_change(device);
    }
    wake_.wait_for(lock, absl::ToChronoNanoseconds(options_.health_period),
                   [this] { return stop_.load(); });
    if (stop_ || options_.clock->Steady() < measure_at_) continue;
    lock.unlock();
    Note(Measure());
    lock.lock();
  }
}

}  // namespace regatta

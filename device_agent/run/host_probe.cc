#include "device_agent/run/host_probe.h"

#include <memory>

#include "device_agent/probe/kernels.h"
#include "device_agent/probe/noise_floor.h"
#include "device_agent/run/instruction_clock.h"

namespace regatta {
namespace {

constexpr int64_t kWindowNs = 2'000'000;
constexpr int64_t kReadBytes = 4 << 20;

}  // namespace

absl::StatusOr<v1::DeviceList> ListHostProcessors() {
  v1::DeviceList list;
  v1::BoardDevice& processors = *list.add_devices();
  processors.set_kind("cpu");
  if (const InstructionClock* clock = InstructionClock::Find()) {
    processors.set_call_clock(clock->Describe());
  }
  return list;
}

absl::StatusOr<v1::ProbeReport> ProbeHostProcessors(const std::string&) {
  const Clock& clock = CallClock();
  const FmaKernel kernel = BestFmaKernel();
  const int64_t iterations = CalibrateFma(kernel, kWindowNs, clock);
  v1::ProbeReport report;
  report.set_peak_flops_per_s(
      kernel.flops_per_iteration * static_cast<double>(iterations) * 1e9 /
      static_cast<double>(TimeFma(kernel, iterations, clock)));
  const std::unique_ptr<ProbeMemory> memory = ProbeMemory::Allocate(kReadBytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError("no memory for the probe");
  }
  report.set_bandwidth_bytes_per_s(
      ReadBandwidth(*memory, memory->bytes(), /*passes=*/2, clock));
  report.set_noise_floor(
      NoiseFloor([&] { return TimeFma(kernel, iterations, clock); },
                 /*sessions=*/5, /*blocks_per_side=*/3));
  return report;
}

}  // namespace regatta

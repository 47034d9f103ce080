#include "device_agent/devices/cuda_provider.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device_agent/devices/driver_devices.h"
#include "device_agent/devices/nvidia_files.h"

namespace regatta {
namespace {

// Of one run worker: what the driver writes.
constexpr int64_t kScratchBytes = int64_t{64} << 20;
// The driver's own threads.
constexpr int kDriverTasks = 64;
constexpr int64_t kStartMs = 30'000;

DriverNeeds NeedsOf(const Board& board) {
  DriverNeeds needs;
  needs.driver = true;
  needs.keep_worker = true;
  needs.reserves_addresses = true;
  needs.max_tasks =
      kDriverTasks + 4 * static_cast<int>(DriverCpus(board).size());
  needs.scratch_bytes = kScratchBytes;
  needs.writable = NvidiaDeviceFiles();
  // Ordinals that stay; no compiled code kept from one trial to the next.
  needs.environment = {"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_CACHE_DISABLE=1"};
  needs.start_ms = kStartMs;
  if (!board.cuda_driver.empty()) {
    needs.arguments = {"--cuda-driver", board.cuda_driver};
  }
  return needs;
}

// An emulated agent has it in its name already.
std::string PrefixOf(const Board& board, const v1::BoardDevice& device) {
  return device.simulated() &&
                 !absl::StartsWith(board.agent_id, kSimulatedPrefix)
             ? kSimulatedPrefix
             : "";
}

class CudaDeviceProvider : public DeviceProvider {
 public:
  std::string_view kind() const override { return "cuda"; }

  absl::StatusOr<std::vector<ServedDevice>> Find(
      const Board& board) const override {
    return ServeDriverDevices(
        kind(), board, NeedsOf(board), [&](const v1::BoardDevice& device) {
          return DriverDeviceName{
              absl::StrCat(PrefixOf(board, device), board.agent_id, "-cuda",
                           device.selector()),
              CudaDeviceClass(device)};
        });
  }

  absl::StatusOr<CpuProbeResult> Probe(
      const Board& board, const ServedDevice& device,
      const CpuProbeOptions& options) const override {
    return ProbeByRunWorker(kind(), board, device, options);
  }
};

}  // namespace

const DeviceProvider& CudaProvider() {
  static const CudaDeviceProvider& provider = *new CudaDeviceProvider;
  return provider;
}

std::string CudaDeviceClass(const v1::BoardDevice& device) {
  if (device.simulated()) {
    return absl::StrCat(kSimulatedPrefix, "cuda-", device.architecture());
  }
  return absl::StrCat("cuda-", ClassSlug(device.name()), "-",
                      device.compute_units(), "sm");
}

}  // namespace regatta

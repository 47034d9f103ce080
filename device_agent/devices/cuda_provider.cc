#include "device_agent/devices/cuda_provider.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/devices/driver_devices.h"

namespace regatta {
namespace {

// Of one run worker: what the driver writes.
constexpr int64_t kScratchBytes = int64_t{64} << 20;
// The driver's own threads.
constexpr int kDriverTasks = 64;
constexpr int64_t kStartMs = 30'000;
constexpr int kMaxGpus = 16;

// Through which the driver reaches its devices; those that are not there are
// skipped. The last are those of boards of the Jetson family.
std::vector<std::string> DeviceFiles() {
  std::vector<std::string> files = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                    "/dev/nvidia-uvm-tools",
                                    "/dev/nvidia-modeset"};
  for (int i = 0; i < kMaxGpus; ++i) {
    files.push_back(absl::StrCat("/dev/nvidia", i));
  }
  for (const char* file :
       {"/dev/nvmap", "/dev/nvgpu", "/dev/nvhost-ctrl", "/dev/nvhost-ctrl-gpu",
        "/dev/nvhost-gpu", "/dev/nvhost-as-gpu", "/dev/nvhost-dbg-gpu",
        "/dev/nvhost-prof-gpu", "/dev/nvhost-tsg-gpu", "/dev/nvsciipc"}) {
    files.push_back(file);
  }
  return files;
}

DriverNeeds NeedsOf(const Board& board) {
  DriverNeeds needs;
  needs.driver = true;
  needs.keep_worker = true;
  needs.reserves_addresses = true;
  needs.max_tasks =
      kDriverTasks + 4 * static_cast<int>(DriverCpus(board).size());
  needs.scratch_bytes = kScratchBytes;
  needs.writable = DeviceFiles();
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
    const DriverNeeds needs = NeedsOf(board);
    ASSIGN_OR_RETURN(const std::vector<v1::BoardDevice> devices,
                     ListDriverDevices("cuda", board, needs));
    std::vector<ServedDevice> served;
    absl::Status first_failure;
    for (const v1::BoardDevice& device : devices) {
      absl::StatusOr<ServedDevice> one = ServeDriverDevice(
          board, device,
          absl::StrCat(PrefixOf(board, device), board.agent_id, "-cuda",
                       device.selector()),
          CudaDeviceClass(device), needs);
      if (one.ok()) {
        served.push_back(*std::move(one));
        continue;
      }
      LOG(kWarning) << "CUDA device " << device.selector() << " ("
                    << device.name()
                    << ") is not served: " << one.status().message();
      first_failure.Update(one.status());
    }
    if (served.empty()) RETURN_IF_ERROR(first_failure);
    return served;
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

#include "device_agent/devices/opencl_provider.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_agent/devices/driver_devices.h"

namespace regatta {
namespace {

constexpr char kPocl[] = "Portable Computing Language";
// Compiled kernels of one run worker.
constexpr int64_t kScratchBytes = int64_t{256} << 20;
// A driver's own threads and its compiler's processes.
constexpr int kDriverTasks = 64;
constexpr int64_t kStartMs = 30'000;

// Through which drivers reach their hardware; those that are not there are
// skipped.
const std::vector<std::string>& DeviceFiles() {
  static const auto& files = *new std::vector<std::string>{
      "/dev/dri",       "/dev/kfd",        "/dev/mali0",   "/dev/kgsl-3d0",
      "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1",
      "/dev/nvidia2",   "/dev/nvidia3",    "/dev/nvidia4", "/dev/nvidia5",
      "/dev/nvidia6",   "/dev/nvidia7"};
  return files;
}

// What run workers need before it is known which devices there are.
DriverNeeds NeedsOf(int cores) {
  DriverNeeds needs;
  needs.driver = true;
  needs.max_tasks = kDriverTasks + 4 * cores;
  needs.scratch_bytes = kScratchBytes;
  needs.writable = DeviceFiles();
  // PoCL would start a thread for each of the machine's processors, whichever
  // of them it may use.
  needs.environment = {absl::StrCat("POCL_MAX_PTHREAD_COUNT=", cores)};
  needs.start_ms = kStartMs;
  return needs;
}

class OpenClDeviceProvider : public DeviceProvider {
 public:
  std::string_view kind() const override { return "opencl"; }

  absl::StatusOr<std::vector<ServedDevice>> Find(
      const Board& board) const override {
    const DriverNeeds needs =
        NeedsOf(static_cast<int>(DriverCpus(board).size()));
    ASSIGN_OR_RETURN(const std::vector<v1::BoardDevice> devices,
                     ListDriverDevices("opencl", board, needs));
    std::vector<ServedDevice> served;
    for (const v1::BoardDevice& device : devices) {
      ASSIGN_OR_RETURN(
          ServedDevice one,
          ServeDriverDevice(
              board, device,
              absl::StrCat(board.agent_id, "-opencl", served.size()),
              OpenClDeviceClass(device, board.host.device_class()), needs));
      one.needs.all_cores = device.on_host_cores();
      served.push_back(std::move(one));
    }
    return served;
  }

  absl::StatusOr<CpuProbeResult> Probe(
      const Board& board, const ServedDevice& device,
      const CpuProbeOptions& options) const override {
    return ProbeByRunWorker(kind(), board, device, options);
  }
};

}  // namespace

const DeviceProvider& OpenClProvider() {
  static const OpenClDeviceProvider& provider = *new OpenClDeviceProvider;
  return provider;
}

std::string OpenClDeviceClass(const v1::BoardDevice& device,
                              const std::string& host_class) {
  if (device.on_host_cores()) {
    return absl::StrCat(
        "opencl-",
        device.platform() == kPocl ? "pocl" : ClassSlug(device.platform()), "-",
        host_class);
  }
  return absl::StrCat("opencl-", ClassSlug(device.name()), "-",
                      device.compute_units(), "cu");
}

}  // namespace regatta

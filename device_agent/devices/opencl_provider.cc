#include "device_agent/devices/opencl_provider.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "device_agent/devices/driver_devices.h"
#include "device_agent/devices/nvidia_files.h"

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
std::vector<std::string> DeviceFiles() {
  std::vector<std::string> files = NvidiaDeviceFiles();
  for (const char* file :
       {"/dev/dri", "/dev/kfd", "/dev/mali0", "/dev/kgsl-3d0"}) {
    files.push_back(file);
  }
  return files;
}

// "0" of the first device of the first platform, "1.2" of the third of the
// second: by the driver's own places, so that no device's name depends on which
// others are well.
std::string PlaceOf(const v1::BoardDevice& device) {
  const std::string place =
      absl::StrReplaceAll(device.selector(), {{"/", "."}});
  return std::string(absl::StripSuffix(place, ".0"));
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
    ASSIGN_OR_RETURN(
        std::vector<ServedDevice> served,
        ServeDriverDevices(
            kind(), board, NeedsOf(static_cast<int>(DriverCpus(board).size())),
            [&](const v1::BoardDevice& device) {
              return DriverDeviceName{
                  absl::StrCat(board.agent_id, "-opencl", PlaceOf(device)),
                  OpenClDeviceClass(device, board.host.device_class())};
            }));
    for (ServedDevice& device : served) {
      device.needs.all_cores = device.board.on_host_cores();
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

#include "device_agent/devices/cpu_provider.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_agent/spawner/cpu_list.h"
#include "proto/device_build.h"

namespace regatta {
namespace {

// Whatever is done behind an emulator takes many times as long.
constexpr int64_t kEmulatedMs = 30'000;

// How run workers time calls on a board whose processors are emulated.
absl::Status AskEmulated(const Board& board, ServedDevice* served) {
  v1::RunRequest request;
  request.add_list_kinds("cpu");
  served->needs.start_ms = kEmulatedMs;
  ASSIGN_OR_RETURN(
      const v1::RunResponse response,
      board.run_worker->Ask(request, served->needs, FormatCpuList(board.cpus)));
  if (response.devices().devices_size() != 1) {
    return absl::InternalError("the run worker does not tell how it times");
  }
  const std::string& clock = response.devices().devices(0).call_clock();
  served->counted = !clock.empty();
  served->info.set_driver_version(absl::StrCat(
      board.emulator, ", ", served->counted ? clock : "wall clock"));
  if (served->counted && board.cpus.size() != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "instructions are counted right in one thread only, and this agent has "
        "processors ",
        FormatCpuList(board.cpus), "; give --cores with one"));
  }
  return absl::OkStatus();
}

// What the emulator counts and what it takes are times of different devices.
std::string ClassOf(const Board& board, const ServedDevice& served) {
  const std::string& name = board.host.device_class();
  if (board.emulator.empty() || name.empty()) return name;
  return absl::StrCat(name, served.counted ? "-instructions" : "-wallclock");
}

class CpuDeviceProvider : public DeviceProvider {
 public:
  std::string_view kind() const override { return "cpu"; }

  absl::StatusOr<std::vector<ServedDevice>> Find(
      const Board& board) const override {
    ServedDevice served;
    if (!board.emulator.empty()) RETURN_IF_ERROR(AskEmulated(board, &served));
    v1::DeviceInfo& device = served.info;
    device.set_device_id(board.agent_id);
    device.set_device_class(board.device_class.empty() ? ClassOf(board, served)
                                                       : board.device_class);
    device.set_target(board.host.target());
    device.set_cores(static_cast<int>(board.cpus.size()));
    device.set_cpu_list(FormatCpuList(board.cpus));
    device.set_memory_bytes(board.machine.memory_bytes);
    device.set_marketing_name(board.machine.marketing_name);
    device.set_health("probing");
    device.set_credit(board.credit);
    if (board.measure_only) {
      SetBuildOf({board.host.compiler_version(), board.host.space(),
                  board.host.space_version()},
                 device);
    }
    if (device.device_class().empty()) {
      return absl::FailedPreconditionError(
          "who builds for this board named no device class; give "
          "--device-class");
    }
    return std::vector<ServedDevice>{served};
  }

  absl::StatusOr<CpuProbeResult> Probe(
      const Board& board, const ServedDevice& device,
      const CpuProbeOptions& options) const override {
    // By the clock that times trials; the caches of the machine below mean
    // nothing to it.
    return device.counted ? ProbeByRunWorker(kind(), board, device, options)
                          : ProbeCpu(options);
  }
};

}  // namespace

const DeviceProvider& CpuProvider() {
  static const CpuDeviceProvider& provider = *new CpuDeviceProvider;
  return provider;
}

}  // namespace regatta

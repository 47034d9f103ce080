#include "device_agent/devices/cpu_provider.h"

#include "device_agent/spawner/cpu_list.h"

namespace regatta {
namespace {

class CpuDeviceProvider : public DeviceProvider {
 public:
  std::string_view kind() const override { return "cpu"; }

  absl::StatusOr<std::vector<ServedDevice>> Find(
      const Board& board) const override {
    ServedDevice served;
    v1::DeviceInfo& device = served.info;
    device.set_device_id(board.agent_id);
    device.set_device_class(board.device_class.empty()
                                ? board.host.device_class()
                                : board.device_class);
    device.set_target(board.host.target());
    device.set_cores(static_cast<int>(board.cpus.size()));
    device.set_cpu_list(FormatCpuList(board.cpus));
    device.set_memory_bytes(board.machine.memory_bytes);
    device.set_marketing_name(board.machine.marketing_name);
    device.set_health("probing");
    device.set_credit(board.credit);
    if (device.device_class().empty()) {
      return absl::FailedPreconditionError(
          "the build worker named no device class; give --device-class");
    }
    return std::vector<ServedDevice>{served};
  }

  absl::StatusOr<CpuProbeResult> Probe(
      const Board&, const ServedDevice&,
      const CpuProbeOptions& options) const override {
    return ProbeCpu(options);
  }
};

}  // namespace

const DeviceProvider& CpuProvider() {
  static const CpuDeviceProvider& provider = *new CpuDeviceProvider;
  return provider;
}

}  // namespace regatta

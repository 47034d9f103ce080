// A tracker whose boards d1 and d2 hang on one power unit, and d3, which has no
// cycle of its own, on another.
#ifndef REGATTA_TESTS_TRACKER_POWER_FIXTURE_H_
#define REGATTA_TESTS_TRACKER_POWER_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/tracker/core_fixture.h"

namespace regatta {

inline PowerHook Hook(const std::string& unit, bool cycle = true) {
  PowerHook hook;
  hook.unit = unit;
  if (cycle) hook.cycle.argv = {"/bin/pdu", "cycle"};
  hook.off.argv = {"/bin/pdu", "off"};
  hook.on.argv = {"/bin/pdu", "on"};
  return hook;
}

class PowerTest : public CoreTest {
 protected:
  PowerTest() {
    options_.fleet.boards["d1"].power = Hook("pdu");
    options_.fleet.boards["d2"].power = Hook("pdu");
    options_.fleet.boards["d3"].power = Hook("another", /*cycle=*/false);
    Reconfigure();
  }
  absl::Status Switch(v1::DeviceCommand command, const std::string& id) {
    v1::ControlDevicesRequest request;
    request.mutable_devices()->add_device_ids(id);
    request.set_command(command);
    request.set_reason("hangs");
    request.set_by("ann");
    const absl::Status status = core_->ControlDevices(request).status();
    Drain();
    return status;
  }
  absl::Status Cycle(const std::string& id) {
    return Switch(v1::DEVICE_COMMAND_POWER_CYCLE, id);
  }
  void Done(const std::string& id, absl::Status status = absl::OkStatus()) {
    core_->PowerDone(id, status);
    Drain();
  }
  // Device and last word of each command since the last call.
  std::vector<std::string> Sent() {
    std::vector<std::string> sent;
    for (const auto& one : std::exchange(switched_, {})) {
      sent.push_back(one.device_id + " " + one.command.argv.back());
    }
    return sent;
  }
  // What history tells of the device, but for its coming and approval.
  std::vector<std::string> Happened(const std::string& id) {
    std::vector<std::string> happened;
    for (const v1::DeviceEvent& event : store_.events) {
      const bool of_power = event.what().find("power") != std::string::npos ||
                            event.what() == "switched off" ||
                            event.what() == "rebooted";
      if (event.device_id() == id && of_power) happened.push_back(event.what());
    }
    return happened;
  }
};

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_POWER_FIXTURE_H_

// The people of the simulated fleet, who know nothing of what goes on.
#include <algorithm>

#include "proto/outcome_names.h"
#include "tests/tracker/simulation.h"

namespace regatta {

void Simulation::Control(v1::ControlDevicesRequest request) {
  request.set_by("ann");
  Input([this, request](TrackerCore& core) {
    const auto response = core.ControlDevices(request);
    if (response.ok()) {
      ++report_.counts[DeviceCommandName(request.command())];
    } else if (response.status().code() == absl::StatusCode::kInvalidArgument) {
      Violation(std::string(response.status().message()));
    }
  });
}

void Simulation::Operate() {
  static constexpr v1::DeviceCommand kCommands[] = {
      v1::DEVICE_COMMAND_APPROVE,     v1::DEVICE_COMMAND_DRAIN,
      v1::DEVICE_COMMAND_RESUME,      v1::DEVICE_COMMAND_QUARANTINE,
      v1::DEVICE_COMMAND_RELEASE,     v1::DEVICE_COMMAND_RESERVE,
      v1::DEVICE_COMMAND_MAINTENANCE, v1::DEVICE_COMMAND_RETIRE};
  const AgentModel& agent = *agents_[random_.Below(agents_.size())];
  const v1::DeviceInfo& device =
      agent.devices[random_.Below(agent.devices.size())];
  v1::ControlDevicesRequest request;
  request.mutable_devices()->add_device_ids(device.device_id());
  request.set_command(kCommands[random_.Below(std::size(kCommands))]);
  request.set_reason("somebody wants it so");
  const bool timed = request.command() == v1::DEVICE_COMMAND_DRAIN ||
                     request.command() == v1::DEVICE_COMMAND_RESERVE;
  if (timed && Chance(0.7)) request.set_for_ms(1 + random_.Below(60'000));
  Control(std::move(request));
  // Most of the time they undo it soon, so that work goes on.
  if (Chance(0.7)) After(Between(100, 20'000), [this] { LetAllWork(); });
}

void Simulation::LetAllWork() {
  for (const char* device_class : {"x", "y"}) {
    for (const auto command :
         {v1::DEVICE_COMMAND_APPROVE, v1::DEVICE_COMMAND_RELEASE}) {
      v1::ControlDevicesRequest request;
      request.mutable_devices()->set_device_class(device_class);
      request.set_command(command);
      Control(std::move(request));
    }
  }
  // By their names: a class leaves those that are retired alone. One at a time,
  // for the tracker may not know all of them yet.
  for (const auto& agent : agents_) {
    for (const v1::DeviceInfo& device : agent->devices) {
      v1::ControlDevicesRequest request;
      request.mutable_devices()->add_device_ids(device.device_id());
      request.set_command(v1::DEVICE_COMMAND_RESUME);
      Control(std::move(request));
    }
  }
}

void Simulation::CheckAssign(const v1::Assignment& assignment) {
  const v1::ListDevicesResponse list = core_->ListDevices();
  const auto device = std::find_if(
      list.devices().begin(), list.devices().end(), [&](const auto& d) {
        return d.info().device_id() == assignment.device_id();
      });
  if (device == list.devices().end()) {
    Violation("work for a device that is not there");
    return;
  }
  const v1::DeviceStanding& standing = device->standing();
  const bool canary = ServerOf(assignment.assignment_id()) == kCanaryServer;
  const bool trusted = standing.trust() == v1::TRUST_HEALTHY ||
                       standing.trust() == v1::TRUST_UNKNOWN ||
                       (canary && standing.trust() == v1::TRUST_QUARANTINED);
  if (!trusted || standing.operator_state() != v1::OPERATOR_STATE_NORMAL) {
    Violation(assignment.assignment_id() + " went to " +
              assignment.device_id() + ", which is " +
              TrustName(standing.trust()) + " and " +
              OperatorStateName(standing.operator_state()));
  }
}

}  // namespace regatta

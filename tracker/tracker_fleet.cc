// TrackerCore: what people and servers are told of devices.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/fleet_mirror.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// Far from the 64 MiB that a server takes in one message.
constexpr size_t kPartBytes = size_t{512} << 10;

}  // namespace

v1::DeviceStatus TrackerCore::ToldOf(const Device& device) const {
  const Agent& agent = registry_.agents().find(device.agent_id)->second;
  v1::DeviceStatus status;
  *status.mutable_info() = device.info;
  status.set_agent_id(agent.id);
  status.set_presence(agent.presence);
  status.set_compiler_version(device.key.compiler_version);
  status.set_agent_version(agent.agent_version);
  status.set_sandbox(device.info.sandbox().empty() ? agent.sandbox
                                                   : device.info.sandbox());
  status.set_measure_only(agent.measure_only);
  status.set_has_clock_offset(agent.clock_offset_ms.has_value());
  status.set_clock_offset_ms(agent.clock_offset_ms.value_or(0));
  *status.mutable_standing() = *standings_.Find(device.info.device_id());
  status.mutable_standing()->clear_canary_times();
  status.set_obstacle(ObstacleOf(status.standing()));
  if (status.obstacle().empty() &&
      !brake_.Why(device.info.device_class()).empty()) {
    status.set_obstacle("kept from work with its whole class: " +
                        brake_.Why(device.info.device_class()));
  }
  if (status.obstacle().empty() && IsDraining(device.info.health())) {
    status.set_obstacle(device.info.health());
  }
  return status;
}

v1::DeviceStatus TrackerCore::StatusOf(const Device& device) const {
  const Agent& agent = registry_.agents().find(device.agent_id)->second;
  const SteadyTime now = clock_.Steady();
  v1::DeviceStatus status = ToldOf(device);
  if (status.obstacle().empty() && IsSwitched(device)) {
    status.set_obstacle(
        "kept from work while its power is being switched; regatta device "
        "history tells how that goes");
  }
  if (const std::string why = WhyRevoked(agent);
      status.obstacle().empty() && !why.empty()) {
    status.set_obstacle(absl::StrCat(
        "kept out, for its certificate was revoked: ", why,
        "; a token lets it join anew: regatta certs token --role agent --name ",
        agent.id));
  }
  status.set_state(device.state);
  status.set_builder(BuilderOf(agent, device));
  status.set_state_since_ms(
      absl::ToInt64Milliseconds(now - device.state_since));
  status.set_last_seen_ms(absl::ToInt64Milliseconds(now - agent.last_seen));
  if (device.canary_passed) {
    status.set_canary_passed_ms(std::max<int64_t>(
        1, absl::ToInt64Milliseconds(now - *device.canary_passed)));
  }
  for (const std::string& id : leases_.OfAgent(agent.id)) {
    const Lease& lease = leases_.all().find(id)->second;
    if (!lease.device_id.empty() &&
        lease.device_id != device.info.device_id()) {
      continue;
    }
    status.set_running(status.running() + 1);
    auto work = works_.find(id);
    if (status.running_what().empty() && work != works_.end()) {
      status.set_running_what(work->second.work.trials(0).workload());
    }
  }
  return status;
}

v1::ListDevicesResponse TrackerCore::ListDevices() const {
  v1::ListDevicesResponse response;
  for (const auto& [id, device] : registry_.devices()) {
    *response.add_devices() = StatusOf(device);
  }
  AddWaitingBoards(response);
  for (v1::BuilderStatus& builder : relay_.Builders()) {
    *response.add_builders() = std::move(builder);
  }
  response.mutable_tracker()->set_version(REGATTA_VERSION);
  response.mutable_tracker()->set_unix_ms(WallMs());
  return response;
}

void TrackerCore::Touch(const Agent& agent) {
  untold_.insert(agent.device_ids.begin(), agent.device_ids.end());
}

void TrackerCore::TakeTouched() {
  untold_.merge(registry_.TakeTouched());
  untold_.merge(standings_.TakeTouched());
}

void TrackerCore::ReportFleet() {
  TakeTouched();
  const SteadyTime now = clock_.Steady();
  if (untold_.empty() ||
      now - last_fleet_change_ < options_.fleet_change_interval) {
    return;
  }
  const std::set<std::string> touched = std::exchange(untold_, {});
  std::vector<Server*> listeners;
  for (auto& [id, server] : servers_) {
    if (server.stream) listeners.push_back(&server);
  }
  // One that attaches later begins with all devices.
  if (listeners.empty()) return;
  last_fleet_change_ = now;
  std::vector<v1::DeviceStatus> changed;
  v1::FleetChange gone;
  for (const std::string& id : touched) {
    if (const Device* device = registry_.FindDevice(id)) {
      changed.push_back(ToldOf(*device));
    } else {
      gone.add_gone_device_ids(id);
    }
  }
  std::vector<v1::FleetChange> parts = InParts(std::move(changed), kPartBytes);
  if (gone.gone_device_ids_size() > 0) parts.push_back(std::move(gone));
  for (Server* server : listeners) {
    for (const v1::FleetChange& part : parts) Send(*server, part);
  }
}

void TrackerCore::TellWholeFleet(Server& server) {
  std::vector<v1::DeviceStatus> all;
  for (const auto& [id, device] : registry_.devices()) {
    all.push_back(ToldOf(device));
  }
  for (v1::FleetChange& part : SnapshotOf(std::move(all), kPartBytes)) {
    Send(server, std::move(part));
  }
}

void TrackerCore::Send(Server& server, v1::FleetChange change) {
  change.set_sequence(++server.fleet_changes);
  v1::DispatchEvent event;
  *event.mutable_fleet_change() = std::move(change);
  Send(*server.stream, std::move(event));
}

}  // namespace regatta

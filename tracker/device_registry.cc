#include "tracker/device_registry.h"

#include <utility>

#include "base/check.h"
#include "proto/device_build.h"

namespace regatta {

Agent& DeviceRegistry::Upsert(std::string_view agent_id) {
  auto it = agents_.find(agent_id);
  if (it == agents_.end()) {
    it = agents_.emplace(std::string(agent_id), Agent()).first;
    it->second.id = it->first;
  }
  return it->second;
}

Agent* DeviceRegistry::FindAgent(std::string_view agent_id) {
  auto it = agents_.find(agent_id);
  return it == agents_.end() ? nullptr : &it->second;
}

Device* DeviceRegistry::FindDevice(std::string_view device_id) {
  auto it = devices_.find(device_id);
  return it == devices_.end() ? nullptr : &it->second;
}

void DeviceRegistry::Remove(std::string_view agent_id) {
  auto it = agents_.find(agent_id);
  if (it == agents_.end()) return;
  const std::set<std::string, std::less<>> ids = it->second.device_ids;
  for (const std::string& id : ids) RemoveDevice(id);
  agents_.erase(it);
}

void DeviceRegistry::Unindex(Device& device) {
  SetFree(device, std::nullopt);
  auto it = matching_.find(device.key);
  if (it == matching_.end()) return;
  it->second.erase(device.info.device_id());
  if (it->second.empty()) matching_.erase(it);
}

Device& DeviceRegistry::PutDevice(Agent& agent, const v1::DeviceInfo& info) {
  Device& device = devices_[info.device_id()];
  CHECK(device.agent_id.empty() || device.agent_id == agent.id)
      << info.device_id() << " belongs to " << device.agent_id;
  if (!device.agent_id.empty()) Unindex(device);
  device.agent_id = agent.id;
  device.info = info;
  DeviceBuild build =
      BuildOf(info, {agent.compiler_version, agent.space, agent.space_version});
  device.key = {info.device_class(), std::move(build.compiler_version),
                std::move(build.space), build.space_version};
  matching_[device.key].insert(info.device_id());
  agent.device_ids.insert(info.device_id());
  return device;
}

void DeviceRegistry::RemoveDevice(std::string_view device_id) {
  auto it = devices_.find(device_id);
  if (it == devices_.end()) return;
  Unindex(it->second);
  if (Agent* agent = FindAgent(it->second.agent_id)) {
    agent->device_ids.erase(it->first);
  }
  devices_.erase(it);
}

void DeviceRegistry::SetFree(Device& device, std::optional<int> load) {
  if (device.free.has_value() == load.has_value() &&
      (!load || (device.free->load == *load &&
                 device.free->idle_order == device.idle_order))) {
    return;
  }
  if (device.free) {
    auto it = free_.find(device.key);
    it->second.erase(*device.free);
    if (it->second.empty()) free_.erase(it);
    device.free.reset();
  }
  if (!load) return;
  device.free = FreeDevice{*load, device.idle_order, device.info.device_id()};
  free_[device.key].insert(*device.free);
}

const std::set<FreeDevice>& DeviceRegistry::Free(const MatchKey& key) const {
  static const auto* const none = new std::set<FreeDevice>;
  auto it = free_.find(key);
  return it == free_.end() ? *none : it->second;
}

int64_t DeviceRegistry::CreditOfClass(std::string_view device_class) const {
  int64_t credit = 0;
  for (const auto& [key, ids] : matching_) {
    if (key.device_class != device_class) continue;
    for (const std::string& id : ids) {
      credit += devices_.find(id)->second.info.credit();
    }
  }
  return credit;
}

const std::set<std::string>& DeviceRegistry::Matching(
    const MatchKey& key) const {
  static const auto* const none = new std::set<std::string>;
  auto it = matching_.find(key);
  return it == matching_.end() ? *none : it->second;
}

KnownAgent ToKnown(const Agent& agent, const DeviceRegistry& registry,
                   int64_t last_seen_unix_ms) {
  KnownAgent known;
  known.agent_id = agent.id;
  known.holds_leases = agent.holds_stored;
  known.lost = agent.presence == v1::PRESENCE_LOST;
  known.last_seen_unix_ms = last_seen_unix_ms;
  known.boot_id = agent.boot_id;
  known.agent_version = agent.agent_version;
  known.compiler_version = agent.compiler_version;
  known.sandbox = agent.sandbox;
  for (const std::string& id : agent.device_ids) {
    known.devices.push_back(registry.devices().find(id)->second.info);
  }
  return known;
}

}  // namespace regatta

#include "tracker/device_registry.h"

#include <utility>

#include "base/check.h"
#include "proto/device_build.h"

namespace regatta {

Agent& DeviceRegistry::Upsert(std::string_view agent_id) {
  auto it = agents_.find(agent_id);
  if (it == agents_.end()) {
    it = agents_.try_emplace(agent_id).first;
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
  unreported_.erase(it->first);
  agents_.erase(it);
}

void DeviceRegistry::Unindex(Device& device) {
  SetFree(device, std::nullopt);
  SetServing(device, false);
  auto it = matching_.find(device.key);
  if (it == matching_.end()) return;
  it->second.erase(device.info.device_id());
  if (it->second.empty()) matching_.erase(it);
}

Device& DeviceRegistry::PutDevice(Agent& agent, const v1::DeviceInfo& info) {
  Device& device = devices_[info.device_id()];
  CHECK(device.agent_id.empty() || device.agent_id == agent.id)
      << info.device_id() << " belongs to " << device.agent_id;
  if (!device.agent_id.empty()) {
    Unindex(device);
    Count(device, agent.unreported, -1);
  }
  device.agent_id = agent.id;
  device.info = info;
  DeviceBuild build =
      BuildOf(info, {agent.compiler_version, agent.space, agent.space_version});
  device.key = {info.device_class(), std::move(build.compiler_version),
                std::move(build.space), build.space_version};
  matching_[device.key].insert(info.device_id());
  agent.device_ids.insert(info.device_id());
  Count(device, agent.unreported, +1);
  touched_.insert(info.device_id());
  return device;
}

void DeviceRegistry::RemoveDevice(std::string_view device_id) {
  auto it = devices_.find(device_id);
  if (it == devices_.end()) return;
  Unindex(it->second);
  Agent& agent = *FindAgent(it->second.agent_id);
  Count(it->second, agent.unreported, -1);
  agent.device_ids.erase(it->first);
  touched_.insert(it->first);
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

void DeviceRegistry::Count(const Device& device, bool unreported,
                           int64_t sign) {
  const auto c = classes_.try_emplace(device.info.device_class()).first;
  if (sign > 0) {
    c->second.device_ids.insert(device.info.device_id());
  } else {
    c->second.device_ids.erase(device.info.device_id());
  }
  c->second.unreported += unreported ? sign : 0;
  if (c->second.device_ids.empty()) classes_.erase(c);
}

void DeviceRegistry::SetServing(Device& device, bool serving) {
  if (device.serving == serving) return;
  device.serving = serving;
  classes_.find(device.info.device_class())->second.credit +=
      device.info.credit() * (serving ? 1 : -1);
}

int64_t DeviceRegistry::CreditOfClass(std::string_view device_class) const {
  const auto found = classes_.find(device_class);
  return found == classes_.end() ? 0 : found->second.credit;
}

const std::set<std::string>& DeviceRegistry::OfClass(
    std::string_view device_class) const {
  static const auto* const none = new std::set<std::string>;
  const auto found = classes_.find(device_class);
  return found == classes_.end() ? *none : found->second.device_ids;
}

bool DeviceRegistry::HasUnreported(std::string_view device_class) const {
  const auto found = classes_.find(device_class);
  return found != classes_.end() && found->second.unreported > 0;
}

void DeviceRegistry::SetUnreported(Agent& agent, bool unreported) {
  if (agent.unreported == unreported) return;
  agent.unreported = unreported;
  for (const std::string& id : agent.device_ids) {
    const Device& device = *FindDevice(id);
    classes_.find(device.info.device_class())->second.unreported +=
        unreported ? 1 : -1;
  }
  if (unreported) {
    unreported_.insert(agent.id);
  } else {
    unreported_.erase(agent.id);
  }
}

void DeviceRegistry::CheckIndices() const {
  std::map<std::string, Class, std::less<>> again;
  for (const auto& [id, device] : devices_) {
    const Agent& agent = agents_.find(device.agent_id)->second;
    Class& c = again[device.info.device_class()];
    c.device_ids.insert(id);
    c.credit += device.serving ? device.info.credit() : 0;
    c.unreported += agent.unreported ? 1 : 0;
  }
  CHECK(again.size() == classes_.size());
  for (const auto& [name, c] : again) {
    const auto found = classes_.find(name);
    CHECK(found != classes_.end() && found->second.device_ids == c.device_ids &&
          found->second.credit == c.credit &&
          found->second.unreported == c.unreported)
        << name;
  }
  for (const auto& [id, agent] : agents_) {
    CHECK(agent.unreported == unreported_.contains(id)) << id;
  }
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

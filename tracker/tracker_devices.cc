// TrackerCore: devices as their agents show them, and changes of theirs.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// What makes a board another one than it was: the first thing, in words. What
// was probed may vary.
std::string WhatChanged(const v1::DeviceInfo& before, const MatchKey& key,
                        const Device& now) {
  const v1::DeviceInfo& info = now.info;
  if (before.device_class() != info.device_class()) return "class";
  if (before.target() != info.target()) return "target";
  if (before.cores() != info.cores()) return "number of cores";
  if (before.cpu_list() != info.cpu_list()) return "processors";
  if (before.driver_version() != info.driver_version()) return "driver";
  if (before.sandbox() != info.sandbox()) return "sandbox";
  if (key.compiler_version != now.key.compiler_version) return "compiler";
  // Not known of a board that was last seen by an earlier tracker.
  if (!key.space.empty() && key != now.key) return "space of schedules";
  return "";
}

}  // namespace

void TrackerCore::PutDevice(Agent& agent, const v1::DeviceInfo& info) {
  const Device* known = registry_.FindDevice(info.device_id());
  const bool is_new = known == nullptr;
  const v1::DeviceInfo before = is_new ? v1::DeviceInfo() : known->info;
  const MatchKey key_before = is_new ? MatchKey() : known->key;
  Device& device = registry_.PutDevice(agent, info);
  faults_.Place(info.device_id(), info.device_class());
  if (is_new) {
    device.idle_order = ++idle_order_;
    device.not_before = started_;
    device.canary_due = clock_.Steady() + options_.canary_interval;
  }
  Admit(agent, info);
  if (before.uncontrolled() != info.uncontrolled()) {
    standings_.Note(info.device_id(), info.device_class(),
                    info.uncontrolled().empty() ? "controlled" : "uncontrolled",
                    info.uncontrolled().empty() ? "clocks are as its class asks"
                                                : info.uncontrolled());
  }
  if (is_new) return;
  const std::string changed = WhatChanged(before, key_before, device);
  if (changed.empty()) return;
  device.no_canary.clear();
  device.canary_voids = 0;
  Unprove(info.device_id(), absl::StrCat("its ", changed, " changed"));
}

void TrackerCore::OnLeaving(Agent& agent, const v1::Leaving& leaving) {
  agent.returns_by = clock_.Steady() +
                     std::min(absl::Milliseconds(leaving.returns_within_ms()),
                              options_.longest_reboot);
  Watch(agent);
  LOG(kInfo) << "agent " << agent.id << " leaves: " << Brief(leaving.reason());
}

}  // namespace regatta

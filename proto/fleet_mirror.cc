#include "proto/fleet_mirror.h"

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

bool Begins(v1::SnapshotPart part) {
  return part == v1::SNAPSHOT_PART_FIRST || part == v1::SNAPSHOT_PART_WHOLE;
}

bool Ends(v1::SnapshotPart part) {
  return part == v1::SNAPSHOT_PART_LAST || part == v1::SNAPSHOT_PART_WHOLE;
}

}  // namespace

void FleetMirror::NewStream() {
  expected_ = 0;
  in_snapshot_ = false;
  parts_.clear();
}

absl::Status FleetMirror::Apply(const v1::FleetChange& change) {
  const v1::SnapshotPart part = change.snapshot();
  if (Begins(part)) {
    expected_ = change.sequence();
    in_snapshot_ = true;
    parts_.clear();
  } else if (expected_ == 0) {
    return absl::OkStatus();  // a snapshot is under way
  }
  // The middle of a snapshot, and nothing else, belongs into one.
  if (change.sequence() != expected_ ||
      in_snapshot_ != (part != v1::SNAPSHOT_PART_NONE)) {
    const int64_t missing = expected_;
    NewStream();
    return absl::FailedPreconditionError(
        absl::StrCat("the tracker's message ", change.sequence(),
                     " about its devices came where ", missing, " was due"));
  }
  ++expected_;
  if (in_snapshot_) {
    TakePart(change);
    return absl::OkStatus();
  }
  for (const v1::DeviceStatus& device : change.devices()) Put(device);
  for (const std::string& id : change.gone_device_ids()) Remove(id);
  return absl::OkStatus();
}

void FleetMirror::TakePart(const v1::FleetChange& change) {
  parts_.insert(parts_.end(), change.devices().begin(), change.devices().end());
  if (!Ends(change.snapshot())) return;
  in_snapshot_ = false;
  std::set<std::string, std::less<>> gone;
  for (const auto& [id, device_class] : class_of_) gone.insert(id);
  for (const v1::DeviceStatus& device : parts_) {
    gone.erase(device.info().device_id());
    Put(device);
  }
  for (const std::string& id : gone) Remove(id);
  parts_.clear();
}

const FleetMirror::Devices& FleetMirror::OfClass(
    std::string_view device_class) const {
  static const auto* const none = new Devices;
  const auto found = classes_.find(device_class);
  return found == classes_.end() ? *none : found->second;
}

void FleetMirror::Put(const v1::DeviceStatus& device) {
  const std::string& id = device.info().device_id();
  const std::string& device_class = device.info().device_class();
  const auto known = class_of_.find(id);
  if (known != class_of_.end() && known->second != device_class) Remove(id);
  class_of_[id] = device_class;
  classes_[device_class][id] = device;
  changed_.insert(device_class);
}

void FleetMirror::Remove(std::string_view device_id) {
  const auto found = class_of_.find(device_id);
  if (found == class_of_.end()) return;
  classes_[found->second].erase(found->first);
  changed_.insert(found->second);
  class_of_.erase(found);
}

std::vector<v1::FleetChange> InParts(std::vector<v1::DeviceStatus> devices,
                                     size_t part_bytes) {
  std::vector<v1::FleetChange> parts;
  size_t bytes = 0;
  for (v1::DeviceStatus& device : devices) {
    const size_t size = device.ByteSizeLong();
    if (parts.empty() || bytes + size > part_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += size;
    *parts.back().add_devices() = std::move(device);
  }
  return parts;
}

std::vector<v1::FleetChange> SnapshotOf(std::vector<v1::DeviceStatus> devices,
                                        size_t part_bytes) {
  std::vector<v1::FleetChange> parts = InParts(std::move(devices), part_bytes);
  if (parts.empty()) parts.emplace_back();
  for (v1::FleetChange& part : parts) {
    part.set_snapshot(v1::SNAPSHOT_PART_NEXT);
  }
  parts.front().set_snapshot(v1::SNAPSHOT_PART_FIRST);
  parts.back().set_snapshot(parts.size() == 1 ? v1::SNAPSHOT_PART_WHOLE
                                              : v1::SNAPSHOT_PART_LAST);
  return parts;
}

}  // namespace regatta

// Follows what a tracker core tells its servers of devices, over lines that
// lose nothing, and compares that with what is there.
#ifndef REGATTA_TESTS_TRACKER_FLEET_WATCH_H_
#define REGATTA_TESTS_TRACKER_FLEET_WATCH_H_

#include <google/protobuf/util/message_differencer.h>

#include <map>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/fleet_mirror.h"
#include "tracker/actions.h"

namespace regatta {

// What FleetChange leaves out.
inline v1::DeviceStatus WithoutMoment(v1::DeviceStatus device) {
  device.clear_state();
  device.clear_running();
  device.clear_running_what();
  device.clear_builder();
  device.clear_state_since_ms();
  device.clear_last_seen_ms();
  device.clear_canary_passed_ms();
  return device;
}

// How the mirror differs from the list, in words; "": it does not.
inline std::string Difference(const FleetMirror& mirror,
                              const v1::ListDevicesResponse& list) {
  int64_t count = 0;
  for (const auto& [name, devices] : mirror.classes()) {
    count += static_cast<int64_t>(devices.size());
  }
  if (count != list.devices_size()) {
    return absl::StrCat("a server knows ", count, " devices of ",
                        list.devices_size());
  }
  for (const v1::DeviceStatus& device : list.devices()) {
    const auto& known = mirror.OfClass(device.info().device_class());
    const auto found = known.find(device.info().device_id());
    if (found == known.end()) {
      return absl::StrCat("a server does not know ", device.info().device_id());
    }
    if (!google::protobuf::util::MessageDifferencer::Equals(
            found->second, WithoutMoment(device))) {
      return absl::StrCat("a server has ", found->second.ShortDebugString(),
                          " for ", device.ShortDebugString());
    }
  }
  return "";
}

class FleetWatch {
 public:
  // Every action of the core, at its time.
  void Take(const Action& action, SteadyTime now) {
    if (const auto* closed = std::get_if<CloseServer>(&action)) {
      Closed(closed->stream);
    }
    const auto* send = std::get_if<SendToServer>(&action);
    if (send == nullptr || !send->event.has_fleet_change()) return;
    const v1::FleetChange& change = send->event.fleet_change();
    if (change.snapshot() == v1::SNAPSHOT_PART_NONE) told_ = now;
    const absl::Status taken = mirrors_[send->stream].Apply(change);
    if (!taken.ok()) trouble_ = std::string(taken.message());
  }
  void Closed(StreamId stream) { mirrors_.erase(stream); }
  // Another core took its place.
  void Restart() { *this = FleetWatch(); }

  // So long after the last telling, a tick leaves nothing untold. To be asked
  // before it.
  bool Due(SteadyTime now, absl::Duration interval) const {
    return now - told_ >= interval;
  }
  // As Difference, of all servers.
  std::string Compare(const v1::ListDevicesResponse& list) const {
    if (!trouble_.empty()) return trouble_;
    for (const auto& [stream, mirror] : mirrors_) {
      if (std::string wrong = Difference(mirror, list); !wrong.empty()) {
        return wrong;
      }
    }
    return "";
  }
  size_t servers() const { return mirrors_.size(); }

 private:
  std::map<StreamId, FleetMirror> mirrors_;
  SteadyTime told_{INT64_MIN / 2};
  std::string trouble_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_FLEET_WATCH_H_

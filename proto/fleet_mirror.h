// A tracker's devices as FleetChanges tell of them.
//
// Not thread-safe.
#ifndef REGATTA_PROTO_FLEET_MIRROR_H_
#define REGATTA_PROTO_FLEET_MIRROR_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "regatta/v1/dispatch_service.pb.h"

namespace regatta {

class FleetMirror {
 public:
  using Devices = std::map<std::string, v1::DeviceStatus, std::less<>>;

  // Takes the message in. FailedPrecondition: one before it is missing (says
  // which), so that a snapshot is to be asked for; what is known stays as it is
  // until that is complete, and what comes before it is ignored.
  absl::Status Apply(const v1::FleetChange& change);
  // A new stream: it begins with a snapshot.
  void NewStream();

  // By class, then by id. A class stays there when its last device goes.
  const std::map<std::string, Devices, std::less<>>& classes() const {
    return classes_;
  }
  // Empty for a class that no device has.
  const Devices& OfClass(std::string_view device_class) const;
  // Every message so far was taken in: no snapshot is in the middle.
  bool whole() const { return expected_ > 0 && !in_snapshot_; }
  // Classes of devices that came, went or changed since the last call.
  std::set<std::string> TakeChanged() { return std::exchange(changed_, {}); }

 private:
  void Put(const v1::DeviceStatus& device);
  void Remove(std::string_view device_id);
  void TakePart(const v1::FleetChange& change);

  std::map<std::string, Devices, std::less<>> classes_;
  std::map<std::string, std::string, std::less<>> class_of_;  // by device id
  std::set<std::string> changed_;
  // Number of the next message; 0: only a snapshot is taken.
  int64_t expected_ = 0;
  bool in_snapshot_ = false;
  std::vector<v1::DeviceStatus> parts_;  // of the snapshot so far
};

// Tells of these devices in messages of about `part_bytes` at most, none for
// none. Their numbers are the sender's to set.
std::vector<v1::FleetChange> InParts(std::vector<v1::DeviceStatus> devices,
                                     size_t part_bytes);
// As a snapshot: at least one.
std::vector<v1::FleetChange> SnapshotOf(std::vector<v1::DeviceStatus> devices,
                                        size_t part_bytes);

}  // namespace regatta

#endif  // REGATTA_PROTO_FLEET_MIRROR_H_

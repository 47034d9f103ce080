// The fleet as the server sees it: what FleetChanges told of its devices,
// summed up by device class. Plain data: copy it to share it between threads;
// copies share what is known of the classes that did not change.
#ifndef REGATTA_SERVER_JOB_FLEET_VIEW_H_
#define REGATTA_SERVER_JOB_FLEET_VIEW_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proto/fleet_mirror.h"

namespace regatta {

// What the devices of a class have in common. Measured numbers are the best of
// the class's devices; 0: not measured.
struct ClassView {
  std::string target;             // complete target text
  std::set<std::string> targets;  // of all its devices
  // Of those that somebody approved.
  std::set<std::string> approved_targets;
  int cores = 0;
  bool simulated = false;
  double peak_flops_per_s = 0;       // of one core
  double bandwidth_bytes_per_s = 0;  // of one core
  int64_t memory_bytes = 0;          // of the largest
  int devices = 0;
  int present = 0;  // online, or silent for a short while only; and approved
  int online = 0;   // present and given work
  // "board B is draining: WHY", of the first that is kept from work.
  std::string obstacle;
  // Assignments that the online devices will hold at once, by the version of
  // their compiler.
  std::map<std::string, int> credit;
};

class FleetView {
 public:
  FleetView() = default;

  // The view after devices of `classes` came, went or changed. REQUIRES: the
  // other classes are in the mirror what they were for this view.
  FleetView With(const FleetMirror& mirror,
                 const std::set<std::string>& classes) const;

  // A tracker has told of its devices at least once.
  bool known() const { return known_; }
  // Null for a class without a registered device.
  const ClassView* Find(std::string_view device_class) const;
  std::vector<std::string> RealClasses() const;  // sorted
  // Those that have a board present; sorted.
  std::vector<std::string> PresentRealClasses() const;
  std::vector<std::string> Classes() const;  // sorted
  // A/A spread of a device as a fraction. Absent when it was not measured.
  std::optional<double> NoiseFloor(const std::string& device_id) const;
  // Why nothing of the class can start now: no device, none online, all kept
  // from work, or none with this compiler. Empty when something can.
  std::string Obstacle(std::string_view device_class,
                       const std::string& compiler_version) const;

 private:
  struct Class {
    ClassView view;
    std::map<std::string, double> noise;  // by device
  };
  static Class Sum(const FleetMirror::Devices& devices);

  bool known_ = false;
  std::map<std::string, std::shared_ptr<const Class>, std::less<>> classes_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_FLEET_VIEW_H_

// What an operator writes down about a fleet, in one JSON file that the tracker
// reads when it starts (docs/operators-guide.md, "The fleet's file"):
//
//   {"auto_approve": {"all": false, "local": false, "classes": ["rpi5-4c"],
//                     "labels": ["rack=2"]},
//    "webhook": "http://127.0.0.1:9000/regatta",
//    "users": {"ci@build": {"weight": 3, "most_percent": 25}},
//    "boards": {"pi-1": {"labels": {"rack": "2"},
//                        "power": {"unit": "pdu-a",
//                                  "off": ["/usr/local/bin/pdu", "off", "3"],
//                                  "on": "http://pdu-a/outlets/3/on"}}}}
#ifndef REGATTA_TRACKER_CONFIG_FLEET_CONFIG_H_
#define REGATTA_TRACKER_CONFIG_FLEET_CONFIG_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta {

// New devices that need no operator to approve them.
struct AutoApprove {
  bool all = false;
  bool local = false;  // whose agents are on this machine
  std::set<std::string> classes;
  std::set<std::string> labels;  // "NAME=VALUE", of the boards' labels below
};

// Something that is done to a board's power: a program with its arguments, run
// as it is, without a shell; or a URL to send an empty POST to.
struct PowerCommand {
  std::vector<std::string> argv;
  std::string url;
  bool empty() const { return argv.empty() && url.empty(); }
};

struct PowerHook {
  std::string unit;  // commands of one unit never overlap
  PowerCommand off;
  PowerCommand on;
  PowerCommand cycle;  // empty: off, ten seconds, on
};

struct BoardConfig {
  std::map<std::string, std::string> labels;  // that it comes with
  std::optional<PowerHook> power;
};

// What a user of the fleet is granted.
struct UserConfig {
  double weight = 1;  // of device time, among those who wait
  // Of what a class's boards hold at once, while others wait.
  double most_percent = 100;
};

struct FleetConfig {
  AutoApprove auto_approve;
  std::map<std::string, UserConfig> users;
  std::string webhook;                        // "": none
  std::map<std::string, BoardConfig> boards;  // by device id
};

// InvalidArgument names the place: "boards.pi-1.power.off: ...".
absl::StatusOr<FleetConfig> ParseFleetConfig(std::string_view text);
// Errors name the file.
absl::StatusOr<FleetConfig> ReadFleetConfig(const std::string& path);

}  // namespace regatta

#endif  // REGATTA_TRACKER_CONFIG_FLEET_CONFIG_H_

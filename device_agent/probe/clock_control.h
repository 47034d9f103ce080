// Whether a board's clocks are held as times of its class are taken under: the
// governor that the class asks for on every processor of the device, and no
// power mode below it. Read from /sys and /var, nothing is set: setting clocks
// is the operator's, so every finding ends with the command that mends it.
//
// Thread safety: free functions.
#ifndef REGATTA_DEVICE_AGENT_PROBE_CLOCK_CONTROL_H_
#define REGATTA_DEVICE_AGENT_PROBE_CLOCK_CONTROL_H_

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// How times of a class are taken.
struct ClockPolicy {
  // Of every processor. Under "performance" the board's power mode is to be its
  // highest too; other governors go with any.
  std::string governor = "performance";
};

// What is not held, one after the other, with commands; "" when all is:
//   "governor powersave on cpu0; run: cpupower frequency-set -g performance"
// Where the system does not control frequencies, as in most virtual machines,
// it says so without a command. `root` is "" outside tests.
std::string UncontrolledClocks(const std::string& root,
                               const std::vector<int>& cpus,
                               const ClockPolicy& policy);

// That text taken apart again.
struct ClockFinding {
  std::string what;    // "governor powersave on cpu0"
  std::string remedy;  // "cpupower frequency-set -g performance"; "": none
};
std::vector<ClockFinding> ClockFindings(std::string_view uncontrolled);

// DeviceInfo.health once probing is over: "ok" or "uncontrolled: " and the
// above.
std::string HealthOf(const std::string& uncontrolled);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_CLOCK_CONTROL_H_

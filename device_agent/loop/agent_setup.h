// From flags and facts to what an agent tells the tracker about itself, and the
// checks of the flags. No processes here: what the build worker says comes in
// through an interface.
#ifndef REGATTA_DEVICE_AGENT_LOOP_AGENT_SETUP_H_
#define REGATTA_DEVICE_AGENT_LOOP_AGENT_SETUP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/probe/machine.h"
#include "proto/device_class.h"
#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

struct AgentFlags {
  std::string tracker = "127.0.0.1:7471";
  std::string state;            // "": DefaultStateDir()
  std::string id;               // "": StableDeviceId
  std::string cores;            // "": all that this process may use
  std::string devices = "cpu";  // kinds, separated by commas
  std::string cuda_driver;      // file of the driver; "": the system's
  std::string device_class;  // of the processors; "": as the build worker names
                             // it
  std::string governor = "performance";  // that times are taken under
  std::string worker_dir;                // "": where this program is
  std::string exec_prefix;               // words before each worker's path
  std::vector<std::string> require_sandbox;
  int credit = 3;
  std::string target;  // of the processors; "": as they are found
  std::vector<std::string> roles = {"device"};
  int builds = 0;  // for others, at once; 0: by the processors
  bool measure_only = false;
  std::vector<std::string> trust_builders;  // keys, or files with keys
  int builder_wait_s = 120;
  std::string lock_folder;        // "": DefaultLockFolder()
  int64_t returns_within_ms = 0;  // told to the tracker when this agent stops
};

// What a board can build for; answered by its build worker.
class BuildWorkerInfo {
 public:
  virtual ~BuildWorkerInfo() = default;
  virtual absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& device) = 0;
};

// What an agent is for.
struct AgentRoles {
  bool device = false;   // serves its board's devices
  bool builder = false;  // builds for other boards
};
// InvalidArgument names what is no role or stands beside one that it cannot
// stand beside.
absl::StatusOr<AgentRoles> ParseRoles(const AgentFlags& flags);

// The processors as they are, for whoever builds for them: what the operator
// said, else, for a builder elsewhere, what the system tells of `cpus`. Where
// an emulator runs this (`emulated`) the system tells of the machine below, so
// what the emulated processor tells, to a build worker here too.
v1::DescribeRequest HostRequest(const AgentFlags& flags, bool elsewhere,
                                bool emulated, const std::vector<int>& cpus);

// InvalidArgument unless `target` is of processors on which this program runs:
// its kind is "cpu" and its triple, where it has one, begins as this program's
// architecture does. `source` says whose it is: "--target".
absl::Status CheckProcessorTarget(const std::string& source,
                                  const std::string& target);

// InvalidArgument unless `text` is HOST:PORT with a port from 1 to 65535.
absl::Status CheckAddress(const std::string& text);

// InvalidArgument unless `text` begins with kSimulatedPrefix.
absl::Status CheckSimulatedName(const std::string& flag,
                                const std::string& text);

// The names that the flags give this agent and its processors' class: names,
// which say so where the agent is `simulated`. InvalidArgument names the flag.
absl::Status CheckNames(const AgentFlags& flags, bool simulated);

// $XDG_STATE_HOME/regatta/agent, else ~/.local/state/regatta/agent.
std::string DefaultStateDir();

// Makes the folder and its parents when missing. The error names the folder.
absl::Status MakeStateDir(const std::string& path);

// How `cores` of the host's processors are built for. `asked`, for the error:
// who is.
absl::StatusOr<v1::Description> DescribeHost(
    int cores, BuildWorkerInfo& worker,
    const std::string& asked = "the build worker");

// What the agent says when it comes up, but for its devices; what is held is
// the loop's to add. `host`: of DescribeHost for `cpus`; empty where nothing is
// built here for the agent's own devices. `simulated`: an emulator runs it
// (probe/emulator.h), so that names say so; InvalidArgument for flags that name
// otherwise.
absl::StatusOr<v1::Hello> MakeHello(const AgentFlags& flags,
                                    const Machine& machine,
                                    const std::vector<int>& cpus,
                                    const std::string& state_dir,
                                    const v1::Description& host,
                                    bool simulated = false);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_AGENT_SETUP_H_

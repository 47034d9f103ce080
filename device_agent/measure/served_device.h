// A device as its agent serves it: what the fleet is told, and what run workers
// on it need.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_SERVED_DEVICE_H_
#define REGATTA_DEVICE_AGENT_MEASURE_SERVED_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// The feature of sandbox/sandbox.h that a driver leaves no room for.
inline constexpr char kTightFeature[] = "tight";

// What a device's driver needs of a run worker; the defaults suit the host's
// own processors, which have none.
struct DriverNeeds {
  // Kernels run through the driver: it starts processes and threads and opens
  // files while they do, so that candidates are not run under the sandbox
  // feature "tight".
  bool driver = false;
  int max_tasks = 64;
  int64_t scratch_bytes = 0;             // of a folder to write to; 0: none
  std::vector<std::string> writable;     // device files
  std::vector<std::string> environment;  // NAME=VALUE
  std::vector<std::string> arguments;    // of the worker; files by whole path
  bool reserves_addresses = false;       // see Spawn
  // Starting takes long on such a device, and nothing of a trial that went well
  // stays behind: workers are used again (worker_pool.h).
  bool keep_worker = false;
  // Loading the driver and compiling for it, beside what a trial may take.
  int64_t start_ms = 0;
  // Every run has all of the device's processors, whatever the trial's threads.
  bool all_cores = false;
};

struct ServedDevice {
  v1::DeviceInfo info;
  v1::BoardDevice board;  // empty: the host's processors
  DriverNeeds needs;
  bool counted = false;  // calls are timed by counting instructions

  bool on_host() const { return board.kind().empty(); }
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_SERVED_DEVICE_H_

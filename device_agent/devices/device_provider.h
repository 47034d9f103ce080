// A kind of device that boards may have: finds its devices and measures them.
// provider_list.cc lists the kinds.
//
// Thread safety: const methods of one provider may be called at once.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_DEVICE_PROVIDER_H_
#define REGATTA_DEVICE_AGENT_DEVICES_DEVICE_PROVIDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/measure/served_device.h"
#include "device_agent/probe/clock_control.h"
#include "device_agent/probe/cpu_probe.h"
#include "device_agent/probe/machine.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// Answers of fresh run workers, which load the drivers that the agent does not.
// Thread-safe.
class RunWorkerInfo {
 public:
  virtual ~RunWorkerInfo() = default;
  virtual absl::StatusOr<v1::RunResponse> Ask(const v1::RunRequest& request,
                                              const DriverNeeds& needs,
                                              const std::string& cpu_list) = 0;
};

// Where devices are looked for.
struct Board {
  std::string agent_id;
  Machine machine;
  std::string emulator;   // that runs this process (probe/emulator.h); "": none
  std::vector<int> cpus;  // owned by the agent, ascending, not empty
  v1::Description host;   // how whoever builds for the board builds for them
  bool measure_only = false;  // that is not the board itself
  std::string device_class;   // of them; "": as who builds for it names it
  int credit = 1;             // of each device
  ClockPolicy clocks;         // that times are taken under
  std::string cuda_driver;    // file of the CUDA driver; "": the system's
  BuildWorkerInfo* build_worker = nullptr;  // they outlive the board
  RunWorkerInfo* run_worker = nullptr;
};

class DeviceProvider {
 public:
  virtual ~DeviceProvider() = default;

  // Of the targets of its devices.
  virtual std::string_view kind() const = 0;

  // The board's devices of this kind, none where there are none; the same ids
  // and classes at every start. Probed numbers are zero and health "probing".
  // An error: they are there but cannot be served.
  virtual absl::StatusOr<std::vector<ServedDevice>> Find(
      const Board& board) const = 0;

  // Measures a device that Find returned, in parts under options.exclusively.
  // Blocks. Cancelled when stopped; else what failed.
  virtual absl::StatusOr<CpuProbeResult> Probe(
      const Board& board, const ServedDevice& device,
      const CpuProbeOptions& options) const = 0;
};

// As Probe, by a run worker that measures the device of this kind itself.
absl::StatusOr<CpuProbeResult> ProbeByRunWorker(std::string_view kind,
                                                const Board& board,
                                                const ServedDevice& device,
                                                const CpuProbeOptions& options);

// A device that is found, and by whom.
struct FoundDevice {
  ServedDevice served;
  const DeviceProvider* provider = nullptr;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_DEVICE_PROVIDER_H_

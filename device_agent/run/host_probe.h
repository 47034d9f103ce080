// The host's processors as a run worker times them, for boards where that is
// not by the machine's clock: an agent asks only where an emulator runs it.
#ifndef REGATTA_DEVICE_AGENT_RUN_HOST_PROBE_H_
#define REGATTA_DEVICE_AGENT_RUN_HOST_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// One device: all processors, and what times calls on them.
absl::StatusOr<v1::DeviceList> ListHostProcessors();

// Of one processor, by that clock. `device` is ignored: there is but one.
absl::StatusOr<v1::ProbeReport> ProbeHostProcessors(const std::string& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_HOST_PROBE_H_

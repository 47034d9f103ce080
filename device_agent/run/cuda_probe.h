// What a CUDA device can do: f32 multiply-adds, reading from its memory, and
// how far two timings of one kernel differ. Takes about a second.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_PROBE_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// `device`: BoardDevice::selector. Unavailable when the driver fails, with what
// it said.
absl::StatusOr<v1::ProbeReport> ProbeCudaDevice(const std::string& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_PROBE_H_

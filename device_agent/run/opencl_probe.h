// What an OpenCL device can do: f32 multiply-adds, reading from its memory, and
// how far two timings of one kernel differ. Takes about a second beside what
// the driver takes to compile.
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_PROBE_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// `device`: BoardDevice::selector. Unavailable when the driver fails, with what
// it said.
absl::StatusOr<v1::ProbeReport> ProbeOpenClDevice(const std::string& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_PROBE_H_

// The OpenCL devices of this machine, by a name that finds one again.
//
// Thread safety: free functions.
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_DEVICE_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/run/opencl_api.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// Every available device with a compiler, in the order of platforms and
// devices; empty on a machine without OpenCL. A platform that does not answer
// is an error in the list, by name and with what it said, and keeps its place:
// selectors of the others do not change. FailedPrecondition or Unavailable when
// the loader itself fails. Loads it and all drivers, so a run worker asks,
// never the agent.
absl::StatusOr<v1::DeviceList> ListOpenClDevices();

namespace opencl {

// Looks a device up by BoardDevice::selector; the first one for "". NotFound,
// with what failed platforms said, when there is no such device.
struct FoundDevice {
  const Api* api = nullptr;
  Device device = nullptr;
};
absl::StatusOr<FoundDevice> FindDevice(const std::string& selector);

// The answer to one question about `device` (kDevice...), 0 where it has none.
template <typename Number>
Number DeviceNumber(const Api& api, Device device, uint32_t question) {
  Number value = 0;
  api.GetDeviceInfo(device, question, sizeof(value), &value, nullptr);
  return value;
}

}  // namespace opencl
}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_DEVICE_H_

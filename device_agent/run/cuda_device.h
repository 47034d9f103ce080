// The CUDA devices of this machine, by a name that finds one again, and the
// context that this process has on one of them.
//
// Thread safety: ListCudaDevices may be called from any thread; a Gpu is used
// by the thread that opened it.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_DEVICE_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/run/cuda_api.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// Every device of the driver, in its order; empty on a machine without driver
// or device. A device that does not answer is an error in the list, with what
// the driver said of it. FailedPrecondition or Unavailable, likewise, when the
// driver itself does not work. Makes no context.
absl::StatusOr<v1::DeviceList> ListCudaDevices();

// Makes this process's context on the device (`selector` as
// BoardDevice::selector, "": the first), or sees whether the one that it has
// still works. NotFound when there is no such device; Unavailable with the
// driver's error. Takes tenths of a second the first time, on a real device.
absl::Status PrepareCudaDevice(const std::string& selector);

namespace cuda {

// Of events.
inline constexpr int64_t kClockResolutionNs = 500;

// A device with its primary context, current in this thread.
struct Gpu {
  // One device per process: the same one again costs nothing. Errors as of
  // PrepareCudaDevice.
  static absl::StatusOr<const Gpu*> Open(const std::string& selector);

  // 0 where the driver does not say.
  int Attribute(DeviceAttribute attribute) const;

  const Api* api = nullptr;
  Device device = 0;
  std::string selector;
  int architecture = 0;  // 80 for sm_80
  // The GPU works in the host's memory, and both may use one address: nothing
  // need be copied.
  bool shares_memory = false;
};

}  // namespace cuda
}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_DEVICE_H_

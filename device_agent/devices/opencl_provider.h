// OpenCL devices: those that an installed driver lists.
//
// Drivers compile when a kernel is first launched, with compilers of their own
// that write files and start processes; so run workers get a scratch folder and
// are not under the sandbox feature "tight". A driver that works on the host's
// processors (PoCL) shares them with the CPU device, under the same locks.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_OPENCL_PROVIDER_H_
#define REGATTA_DEVICE_AGENT_DEVICES_OPENCL_PROVIDER_H_

#include <string>

#include "device_agent/devices/device_provider.h"

namespace regatta {

const DeviceProvider& OpenClProvider();

// The class of a device: "opencl-nvidia-h200-132cu" from its name and compute
// units; "opencl-pocl-znver4-2c" from driver and processors (`host_class`)
// where the driver works on the host's.
std::string OpenClDeviceClass(const v1::BoardDevice& device,
                              const std::string& host_class);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_OPENCL_PROVIDER_H_

// CUDA devices: those that NVIDIA's driver lists, or the file that
// --cuda-driver names in its place.
//
// Making a context takes tenths of a second, so run workers are kept and reused
// (DriverNeeds::keep_worker).
#ifndef REGATTA_DEVICE_AGENT_DEVICES_CUDA_PROVIDER_H_
#define REGATTA_DEVICE_AGENT_DEVICES_CUDA_PROVIDER_H_

#include <string>

#include "device_agent/devices/device_provider.h"

namespace regatta {

// Find leaves out devices that the build worker does not build for, and logs
// why; it fails with the first reason when none is left.
const DeviceProvider& CudaProvider();

// The class of a device: "cuda-nvidia-h200-132sm" from its name and processors;
// "simulated-cuda-sm_80" where a simulator acts as one.
std::string CudaDeviceClass(const v1::BoardDevice& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_CUDA_PROVIDER_H_

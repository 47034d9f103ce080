// The host's processors that the agent owns, as one device.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_CPU_PROVIDER_H_
#define REGATTA_DEVICE_AGENT_DEVICES_CPU_PROVIDER_H_

#include "device_agent/devices/device_provider.h"

namespace regatta {

const DeviceProvider& CpuProvider();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_CPU_PROVIDER_H_

// The device files of NVIDIA's driver, for whatever goes through it.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_NVIDIA_FILES_H_
#define REGATTA_DEVICE_AGENT_DEVICES_NVIDIA_FILES_H_

#include <string>
#include <vector>

namespace regatta {

// Of 16 GPUs and of boards of the Jetson family; those that are not there are
// skipped by who grants them.
std::vector<std::string> NvidiaDeviceFiles();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_NVIDIA_FILES_H_

// What a device's trials are built with: boards of one class work together only
// where these agree.
#ifndef REGATTA_PROTO_DEVICE_BUILD_H_
#define REGATTA_PROTO_DEVICE_BUILD_H_

#include <cstdint>
#include <string>

#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

struct DeviceBuild {
  std::string compiler_version;  // "" when nothing builds for it here
  std::string space;
  int32_t space_version = 0;
};

// The device's own, else its agent's.
inline DeviceBuild BuildOf(const v1::DeviceInfo& device, DeviceBuild agent) {
  if (device.compiler_version().empty()) return agent;
  return {device.compiler_version(), device.space(), device.space_version()};
}
inline DeviceBuild BuildOf(const v1::DeviceInfo& device,
                           const v1::Hello& hello) {
  return BuildOf(
      device, {hello.compiler_version(), hello.space(), hello.space_version()});
}

// The first word of its target: "cpu", "opencl".
inline std::string KindOf(const v1::DeviceInfo& device) {
  return device.target().substr(0, device.target().find(','));
}

}  // namespace regatta

#endif  // REGATTA_PROTO_DEVICE_BUILD_H_

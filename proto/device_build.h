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
  friend bool operator==(const DeviceBuild&, const DeviceBuild&) = default;
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

// As the device's own.
inline void SetBuildOf(const DeviceBuild& build, v1::DeviceInfo& device) {
  device.set_compiler_version(build.compiler_version);
  device.set_space(build.space);
  device.set_space_version(build.space_version);
}

// The first word of a target: "cpu", "opencl".
inline std::string KindOfTarget(const std::string& target) {
  return target.substr(0, target.find(','));
}
inline std::string KindOf(const v1::DeviceInfo& device) {
  return KindOfTarget(device.target());
}

// How the triple of a target of processors begins: "aarch64"; "" for others.
inline std::string ArchitectureOfTarget(const std::string& target) {
  const std::string field = ",triple=";
  const size_t at = target.find(field);
  if (at == std::string::npos) return "";
  const size_t begin = at + field.size();
  return target.substr(begin, target.find_first_of("-,", begin) - begin);
}

}  // namespace regatta

#endif  // REGATTA_PROTO_DEVICE_BUILD_H_

// What the name of a device class says.
#ifndef REGATTA_PROTO_DEVICE_CLASS_H_
#define REGATTA_PROTO_DEVICE_CLASS_H_

#include <string_view>

namespace regatta {

// Ids and classes of devices that are simulated, or whose processor is
// emulated, begin so, and no others do: a log knows a class by its name alone,
// and what was simulated must not answer for a real device.
inline constexpr char kSimulatedPrefix[] = "simulated-";

inline bool IsSimulatedClass(std::string_view device_class) {
  return device_class.substr(0, sizeof(kSimulatedPrefix) - 1) ==
         kSimulatedPrefix;
}

}  // namespace regatta

#endif  // REGATTA_PROTO_DEVICE_CLASS_H_

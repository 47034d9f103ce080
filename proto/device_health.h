// DeviceInfo.health, one word for programs and the reason for people.
#ifndef REGATTA_PROTO_DEVICE_HEALTH_H_
#define REGATTA_PROTO_DEVICE_HEALTH_H_

#include <string_view>

namespace regatta {

// Whether the board's clocks are held as times of its class are taken under.
// Agents of the release before count closed sessions after it: "ok; 2 ...".
inline bool IsHealthOk(std::string_view health) {
  return health == "ok" || health.starts_with("ok;");
}

}  // namespace regatta

#endif  // REGATTA_PROTO_DEVICE_HEALTH_H_

// What the webhook is told of an event.
//
// Free functions.
#ifndef REGATTA_TRACKER_CONFIG_EVENT_JSON_H_
#define REGATTA_TRACKER_CONFIG_EVENT_JSON_H_

#include <string>

#include "regatta/v1/device_control.pb.h"

namespace regatta {

// {"unix_ms": 1, "device": "pi-1", "device_class": "rpi5-4c", "what": "drain",
//  "reason": "fan swap", "by": "ann@desk"}
std::string EventJson(const v1::DeviceEvent& event);

}  // namespace regatta

#endif  // REGATTA_TRACKER_CONFIG_EVENT_JSON_H_

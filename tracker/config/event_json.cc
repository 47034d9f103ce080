#include "tracker/config/event_json.h"

#include "nlohmann/json.hpp"

namespace regatta {

std::string EventJson(const v1::DeviceEvent& event) {
  return nlohmann::json{{"unix_ms", event.unix_ms()},
                        {"device", event.device_id()},
                        {"device_class", event.device_class()},
                        {"what", event.what()},
                        {"reason", event.reason()},
                        {"by", event.by()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace regatta

#ifndef REGATTA_BASE_WHOLE_NUMBER_H_
#define REGATTA_BASE_WHOLE_NUMBER_H_

#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"

namespace regatta {

// The library makes an integer of any number, and what it makes of 1e25 is
// undefined. Throws what the library throws for another type; its callers
// catch.
inline int64_t WholeNumber(const nlohmann::json& json) {
  if (!json.is_number_integer()) {
    throw nlohmann::json::type_error::create(
        302,
        "type must be a whole number, but is " + std::string(json.type_name()),
        &json);
  }
  return json.get<int64_t>();
}

}  // namespace regatta

#endif  // REGATTA_BASE_WHOLE_NUMBER_H_

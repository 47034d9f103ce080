// What nlohmann's exceptions say, without their class.
#ifndef REGATTA_BASE_JSON_REASON_H_
#define REGATTA_BASE_JSON_REASON_H_

#include <string_view>

namespace regatta {

// "why" of "[json.exception.parse_error.101] parse error at line 1, column 3:
// why", the what() of an exception; who shows it knows the place.
inline std::string_view JsonReason(std::string_view what) {
  const size_t colon = what.find(": ");
  return colon == std::string_view::npos ? what : what.substr(colon + 2);
}

}  // namespace regatta

#endif  // REGATTA_BASE_JSON_REASON_H_

// Where a user's programs keep their state when nobody says otherwise.
#ifndef REGATTA_BASE_STATE_DIR_H_
#define REGATTA_BASE_STATE_DIR_H_

#include <cstdlib>
#include <string>

namespace regatta {

// $XDG_STATE_HOME/regatta, else ~/.local/state/regatta, else `homeless`: for
// users without a home, such as a service's.
inline std::string UserStateDir(const std::string& homeless) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty()) {
    return state + "/regatta";
  }
  const std::string home = variable("HOME");
  return home.empty() ? homeless : home + "/.local/state/regatta";
}

}  // namespace regatta

#endif  // REGATTA_BASE_STATE_DIR_H_

// Debian's abseil has a string_view of its own; these are the way across.
#ifndef REGATTA_BASE_STRINGS_H_
#define REGATTA_BASE_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace regatta {

inline absl::string_view ToAbsl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

}  // namespace regatta

#endif  // REGATTA_BASE_STRINGS_H_

#include "base/name_check.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace regatta {

absl::Status CheckName(std::string_view what, std::string_view text) {
  const bool good =
      !text.empty() && text.size() <= 128 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_' || c == '.';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(what), ": \"", ToAbsl(text.substr(0, 200)),
                   "\" is not 1 to 128 letters, digits, '-', '_' or '.'"));
}

}  // namespace regatta

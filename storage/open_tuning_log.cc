#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/sqlite_tuning_log.h"
#include "storage/tuning_log.h"

namespace regatta {
namespace {

struct Backend {
  std::string_view scheme;
  absl::StatusOr<std::unique_ptr<TuningLog>> (*open)(const std::string& place,
                                                     const OpenOptions&);
};

// THE list of backends. The first also takes locations without a scheme.
constexpr Backend kBackends[] = {
    {"sqlite", sqlite::OpenSqliteLog},
};

// The scheme before the first colon: a letter, then at least one letter, digit,
// '+', '-' or '.'. Empty: a path. A path that looks so is written "./a:b".
std::string_view SchemeOf(std::string_view location) {
  const size_t colon = location.find(':');
  if (colon == std::string_view::npos || colon < 2) return {};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  if (kLetters.find(location[0]) == std::string_view::npos) return {};
  const std::string_view scheme = location.substr(0, colon);
  constexpr std::string_view kRest = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
  if (scheme.find_first_not_of(kRest) != std::string_view::npos) return {};
  return scheme;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuningLog>> OpenTuningLog(
    std::string_view location, const OpenOptions& options) {
  const std::string_view scheme = SchemeOf(location);
  if (scheme.empty()) {
    return kBackends[0].open(std::string(location), options);
  }
  std::string known;
  for (const Backend& backend : kBackends) {
    if (backend.scheme == scheme) {
      return backend.open(std::string(location.substr(scheme.size() + 1)),
                          options);
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ",
                    std::string(backend.scheme), ":");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(location), ": no tuning log can be at ",
                   std::string(scheme), ":; known are ", known,
                   " and plain paths (write ./ before a path with a colon)"));
}

}  // namespace regatta

#include "tracker/tracker_options.h"

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

absl::Status Positive(absl::Duration value, const char* name) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be positive, got ",
                   absl::ToInt64Milliseconds(value), " ms"));
}

}  // namespace

absl::Status Validate(const TrackerOptions& options) {
  for (const auto& [value, name] :
       {std::pair{options.heartbeat, "the heartbeat interval"},
        std::pair{options.lease, "the lease"},
        std::pair{options.accept, "the accept deadline"},
        std::pair{options.suspect, "the suspect limit"},
        std::pair{options.lost, "the lost limit"},
        std::pair{options.restart_window, "the restart window"}}) {
    if (absl::Status status = Positive(value, name); !status.ok()) {
      return status;
    }
  }
  if (options.lease < 2 * options.heartbeat) {
    return absl::InvalidArgumentError(
        absl::StrCat("the lease of ", absl::ToInt64Milliseconds(options.lease),
                     " ms must be at least two heartbeat intervals of ",
                     absl::ToInt64Milliseconds(options.heartbeat), " ms"));
  }
  if (options.suspect < 2 * options.heartbeat) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the suspect limit of ", absl::ToInt64Milliseconds(options.suspect),
        " ms must be at least two heartbeat intervals of ",
        absl::ToInt64Milliseconds(options.heartbeat), " ms"));
  }
  if (options.lost < options.suspect) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the lost limit of ", absl::ToInt64Milliseconds(options.lost),
        " ms must not be below the suspect limit of ",
        absl::ToInt64Milliseconds(options.suspect), " ms"));
  }
  return absl::OkStatus();
}

}  // namespace regatta

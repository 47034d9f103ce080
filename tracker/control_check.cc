// CheckControl: what of an operator's command is wrong whatever the devices.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/one_line.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"
#include "tracker/operator_state.h"

namespace regatta {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr int kMaxLabels = 32;

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

bool NeedsReason(v1::DeviceCommand command) {
  return command == v1::DEVICE_COMMAND_DRAIN ||
         command == v1::DEVICE_COMMAND_QUARANTINE ||
         command == v1::DEVICE_COMMAND_RESERVE ||
         command == v1::DEVICE_COMMAND_MAINTENANCE ||
         command == v1::DEVICE_COMMAND_RETIRE ||
         command == v1::DEVICE_COMMAND_POWER_OFF ||
         command == v1::DEVICE_COMMAND_POWER_CYCLE;
}

// 0: it lasts until somebody ends it.
absl::Duration LongestFor(v1::DeviceCommand command) {
  switch (command) {
    case v1::DEVICE_COMMAND_DRAIN:
    case v1::DEVICE_COMMAND_MAINTENANCE:
      return kLongestMaintenance;
    case v1::DEVICE_COMMAND_RESERVE:
      return kLongestReservation;
    default:
      return absl::ZeroDuration();
  }
}

absl::Status CheckLabels(
    const google::protobuf::Map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels) {
    return Bad("labels has ", labels.size(), " entries, at most ", kMaxLabels,
               " are allowed");
  }
  for (const auto& [name, value] : labels) {
    const bool plain =
        std::all_of(name.begin(), name.end(), [](unsigned char c) {
          return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
        });
    if (name.empty() || name.size() > kMaxNameBytes || !plain) {
      return Bad("label '", name,
                 "' must be 1 to 128 letters, digits, dots, dashes and "
                 "underscores");
    }
    if (value.size() > kMaxNameBytes ||
        std::any_of(value.begin(), value.end(), absl::ascii_iscntrl)) {
      return Bad("the value of label ", name,
                 " must be one line of at most 128 bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckText(const std::string& text, size_t max, const char* name) {
  if (text.size() > max) {
    return Bad(name, " has ", text.size(), " bytes, at most ", max,
               " are allowed");
  }
  if (OneLine(text) != text) {
    return Bad(name, " must be one line without control characters");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckControl(const v1::ControlDevicesRequest& request) {
  const v1::DeviceSelector& devices = request.devices();
  if (devices.device_ids().empty() && devices.device_class().empty() &&
      devices.labels().empty()) {
    return Bad("no device is named: give ids, a class or labels");
  }
  const v1::DeviceCommand command = request.command();
  if (!v1::DeviceCommand_IsValid(command) ||
      command == v1::DEVICE_COMMAND_UNSPECIFIED) {
    return Bad("command is ", static_cast<int>(command), ", which is none");
  }
  const std::string name = DeviceCommandName(command);
  if (request.by().empty()) return Bad("by is empty: who asks?");
  RETURN_IF_ERROR(CheckText(request.by(), kMaxNameBytes, "by"));
  RETURN_IF_ERROR(CheckText(request.reason(), kMaxReasonBytes, "reason"));
  if (NeedsReason(command) &&
      absl::StripAsciiWhitespace(request.reason()).empty()) {
    return Bad(name, " needs a reason, for those who find the device so");
  }
  const absl::Duration longest = LongestFor(command);
  if (request.for_ms() < 0 || absl::Milliseconds(request.for_ms()) > longest) {
    if (longest == absl::ZeroDuration()) {
      return Bad(name, " takes no time");
    }
    return Bad(name, " lasts from 1 ms to ", absl::FormatDuration(longest),
               ", not ", request.for_ms(), " ms");
  }
  if (command == v1::DEVICE_COMMAND_LABEL) {
    if (request.labels().empty()) return Bad("label without any label");
    return CheckLabels(request.labels());
  }
  if (!request.labels().empty()) return Bad(name, " sets no labels");
  return absl::OkStatus();
}

}  // namespace regatta

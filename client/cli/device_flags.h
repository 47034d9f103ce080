// Flags that name boards and say for how long something lasts.
#ifndef REGATTA_CLIENT_CLI_DEVICE_FLAGS_H_
#define REGATTA_CLIENT_CLI_DEVICE_FLAGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "regatta/v1/device_control.pb.h"

namespace regatta::cli {

// Which boards: ids as positional arguments, --class, --label; all that match
// every one of these.
struct DeviceSelection {
  std::vector<std::string> ids;
  std::string device_class;
  std::vector<std::string> labels;  // NAME or NAME=VALUE, checked
  v1::DeviceSelector ToProto() const;
};
void AddDeviceSelection(CLI::App* command, DeviceSelection* devices);

// --for or --until; at most one of them.
struct HoldTime {
  std::string for_text;
  std::string until_text;
  // From `now` on; zero when neither is given. InvalidArgument names the flag.
  absl::StatusOr<absl::Duration> Duration(absl::Time now) const;
};
void AddHoldTime(CLI::App* command, HoldTime* time);

// "NAME=VALUE", and "NAME" (value "") unless values are required.
// InvalidArgument quotes the one that is neither.
absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& texts, bool values_required);

// Of the local time zone: "2026-11-30 14:05:09".
std::string FormatWhen(int64_t unix_ms);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_DEVICE_FLAGS_H_

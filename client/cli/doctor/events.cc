#include "client/cli/doctor/events.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/device_flags.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

// As the tracker's history spells them.
constexpr char kHookFailed[] = "power hook failed";

bool IsOrder(const std::string& what) {
  return what == DeviceCommandName(v1::DEVICE_COMMAND_POWER_OFF) ||
         what == DeviceCommandName(v1::DEVICE_COMMAND_POWER_ON) ||
         what == DeviceCommandName(v1::DEVICE_COMMAND_POWER_CYCLE);
}

}  // namespace

std::vector<Finding> ExamineEvents(const v1::DeviceHistoryResponse& history) {
  const v1::DeviceEvent* order = nullptr;
  const v1::DeviceEvent* failed = nullptr;
  int failures = 0;
  for (const v1::DeviceEvent& event : history.events()) {
    if (IsOrder(event.what())) {
      order = &event;
      failed = nullptr;
      failures = 0;
    } else if (event.what() == kHookFailed) {
      failed = &event;
      ++failures;
    } else if (event.what() == "rebooted" || event.what() == "powered" ||
               event.what() == "switched off") {
      failed = nullptr;
      failures = 0;
    }
  }
  if (failed == nullptr) return {};
  return {{Level::kWarn, "power hook",
           absl::StrCat(order == nullptr
                            ? std::string("it")
                            : absl::StrCat(order->what(), " of ", order->by()),
                        " failed ", failures, " time(s), last at ",
                        FormatWhen(failed->unix_ms()), ": ", failed->reason()),
           "on the tracker's machine, run the board's power command of the "
           "fleet's file by hand, as the tracker's user"}};
}

}  // namespace regatta::cli

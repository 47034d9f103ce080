// The tracker's file of the fleet: whether it would be taken, whether the
// programs of power hooks are there, whether the webhook takes an event.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "client/cli/doctor/doctor.h"
#include "regatta/v1/device_control.pb.h"
#include "tracker/config/event_json.h"
#include "tracker/config/fleet_config.h"
#include "tracker/config/http_post.h"
#include "tracker/config/http_url.h"

namespace regatta::cli {
namespace {

constexpr absl::Duration kWebhookLimit = absl::Seconds(5);

std::string TestEvent() {
  v1::DeviceEvent event;
  event.set_unix_ms(absl::ToUnixMillis(RealClock().Wall()));
  event.set_what("test");
  event.set_reason("regatta doctor asks whether events arrive");
  event.set_by("regatta doctor");
  return EventJson(event);
}

Finding ExamineWebhook(const std::string& url, const std::string& file) {
  if (url.empty()) return {Level::kOk, "webhook", "the file names none", ""};
  if (!HttpAvailable()) {
    return {Level::kWarn, "webhook",
            "not tried: this program was built without cpp-httplib",
            "install libcpp-httplib-dev and build again"};
  }
  const SteadyTime asked = RealClock().Steady();
  const absl::Status told =
      HttpPost(url, TestEvent(), "application/json", kWebhookLimit);
  if (told.ok()) {
    return {Level::kOk, "webhook",
            absl::StrFormat(
                "%s took a test event in %.1f ms", ParseHttpUrl(url)->shown,
                absl::ToDoubleMilliseconds(RealClock().Steady() - asked)),
            ""};
  }
  return {Level::kFail, "webhook", std::string(told.message()),
          absl::IsDeadlineExceeded(told)
              ? "restart what receives it, or look at the way there: the "
                "tracker drops events that it does not take"
              : absl::StrCat("start what receives it, or correct 'webhook' in ",
                             file,
                             " and restart the tracker; it is tried from this "
                             "machine: run this on the tracker's")};
}

// Of programs alone: a URL is not asked, since that would switch.
Finding ExamineHooks(const FleetConfig& fleet) {
  int hooks = 0;
  for (const auto& [id, board] : fleet.boards) {
    if (!board.power) continue;
    ++hooks;
    for (const PowerCommand* command :
         {&board.power->off, &board.power->on, &board.power->cycle}) {
      if (command->argv.empty()) continue;
      const std::string& program = command->argv[0];
      if (access(program.c_str(), X_OK) == 0) continue;
      return {Level::kFail, "power hooks",
              absl::StrCat("of ", id, ": ", program, ": ", strerror(errno)),
              "install it on the tracker's machine, for the tracker's user to "
              "run, or correct its path"};
    }
  }
  return {Level::kOk, "power hooks",
          absl::StrCat(hooks, " board(s) have one; their programs are here"),
          ""};
}

}  // namespace

std::vector<Finding> ExamineFleetFile(const DoctorOptions& options) {
  const std::string& file = options.fleet_config;
  if (file.empty()) {
    return {{Level::kOk, "file",
             "not looked at; on the tracker's machine, --fleet-config FILE "
             "tries its webhook, too",
             ""}};
  }
  const auto fleet = ReadFleetConfig(file);
  if (!fleet.ok()) {
    return {{Level::kFail, "file", std::string(fleet.status().message()),
             "correct it there; the tracker does not start with it"}};
  }
  return {{Level::kOk, "file", file + " is one that a tracker takes", ""},
          ExamineHooks(*fleet),
          ExamineWebhook(fleet->webhook, file)};
}

}  // namespace regatta::cli

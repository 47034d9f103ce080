// `regatta device`: what an operator does with boards.
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/cli/asker.h"
#include "client/cli/command_group.h"
#include "client/cli/commands.h"
#include "client/cli/device_flags.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/server_client.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

// Longer than the tracker lets a board drain.
constexpr absl::Duration kWaitLimit = absl::Seconds(90);
constexpr std::chrono::milliseconds kWaitStep(100);

struct Flags {
  ServerFlags server;
  DeviceSelection devices;
  std::string reason;
  HoldTime time;
  bool wait = false;
  bool json = false;
};

// A subcommand of `regatta device` that changes something.
struct Verb {
  v1::DeviceCommand command;
  const char* help;
  bool needs_reason = false;
  bool takes_time = false;
  bool drains = false;
};

// THE list, in the order of `regatta device --help`.
constexpr Verb kVerbs[] = {
    {v1::DEVICE_COMMAND_APPROVE, "Let new boards take work"},
    {.command = v1::DEVICE_COMMAND_DRAIN,
     .help = "Take boards out gently: what runs ends, within 60 s",
     .needs_reason = true,
     .takes_time = true,
     .drains = true},
    {v1::DEVICE_COMMAND_RESUME,
     "Back to work from drain, maintenance, reservation or retirement"},
    {.command = v1::DEVICE_COMMAND_QUARANTINE,
     .help = "Believe nothing more that boards say; stops what runs",
     .needs_reason = true},
    {v1::DEVICE_COMMAND_RELEASE,
     "End a quarantine or a reservation; a broken board is tried again"},
    {.command = v1::DEVICE_COMMAND_RESERVE,
     .help = "Have boards alone: free within 10 s, for 2 h, at most 8 h; again "
             "renews",
     .needs_reason = true,
     .takes_time = true,
     .drains = true},
    {.command = v1::DEVICE_COMMAND_MAINTENANCE,
     .help = "Take boards out at once: stops what runs",
     .needs_reason = true,
     .takes_time = true},
    {.command = v1::DEVICE_COMMAND_RETIRE,
     .help = "Take boards out for good",
     .needs_reason = true,
     .drains = true},
    {.command = v1::DEVICE_COMMAND_POWER_OFF,
     .help = "Switch boards off by their power hooks, and take them out",
     .needs_reason = true},
    {.command = v1::DEVICE_COMMAND_POWER_ON,
     .help = "Switch boards on by their power hooks"},
    {.command = v1::DEVICE_COMMAND_POWER_CYCLE,
     .help = "Switch boards off and on by their power hooks",
     .needs_reason = true},
};

CLI::Validator SaysSomething() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return absl::StripAsciiWhitespace(text).empty()
                   ? "says nothing; it is for those who find the board so"
                   : "";
      },
      "");
}

// "power-cycle".
std::string VerbName(v1::DeviceCommand command) {
  return absl::StrReplaceAll(DeviceCommandName(command), {{"_", "-"}});
}

std::string Describe(const v1::ControlledDevice& device) {
  const v1::DeviceStanding& standing = device.standing();
  std::string text =
      absl::StrCat(device.device_id(), ": ", TrustName(standing.trust()), ", ",
                   OperatorStateName(standing.operator_state()));
  if (standing.operator_state() == v1::OPERATOR_STATE_DRAINING) {
    absl::StrAppend(&text, ", then ", OperatorStateName(standing.next()));
  }
  const int64_t until = standing.operator_standing().until_unix_ms();
  if (until > 0) absl::StrAppend(&text, ", until ", FormatWhen(until));
  if (!device.changed()) absl::StrAppend(&text, " (as before)");
  return text;
}

int Print(const v1::ControlDevicesResponse& response, bool json) {
  if (!json) {
    for (const v1::ControlledDevice& device : response.devices()) {
      std::cout << Describe(device) << "\n";
    }
    return kExitDone;
  }
  Json devices = Json::array();
  for (const v1::ControlledDevice& device : response.devices()) {
    Json document = {{"id", device.device_id()}, {"changed", device.changed()}};
    document.update(StandingDocument(device.standing()));
    devices.push_back(document);
  }
  PrintJson({{"devices", devices}});
  return kExitDone;
}

// Until none of them drains any more; puts what they are by then into
// `response`.
absl::Status AwaitDrained(ServerClient& client,
                          v1::ControlDevicesResponse* response) {
  const SteadyTime limit = RealClock().Steady() + kWaitLimit;
  while (true) {
    auto list = client.ListDevices();
    if (!list.ok()) return list.status();
    std::string draining;
    for (v1::ControlledDevice& device : *response->mutable_devices()) {
      for (const v1::DeviceStatus& status : list->devices()) {
        if (status.info().device_id() != device.device_id()) continue;
        *device.mutable_standing() = status.standing();
      }
      if (device.standing().operator_state() == v1::OPERATOR_STATE_DRAINING) {
        draining = device.device_id();
      }
    }
    if (draining.empty()) return absl::OkStatus();
    if (RealClock().Steady() >= limit) {
      return absl::DeadlineExceededError(
          absl::StrCat("device ", draining, " still drains after ",
                       absl::FormatDuration(kWaitLimit)));
    }
    std::this_thread::sleep_for(kWaitStep);
  }
}

bool SwitchesPower(v1::DeviceCommand command) {
  return command == v1::DEVICE_COMMAND_POWER_OFF ||
         command == v1::DEVICE_COMMAND_POWER_ON ||
         command == v1::DEVICE_COMMAND_POWER_CYCLE;
}

int Carry(const Flags& flags, v1::ControlDevicesRequest request) {
  request.set_by(AskerName());
  request.set_reason(flags.reason);
  *request.mutable_devices() = flags.devices.ToProto();
  auto duration = flags.time.Duration(RealClock().Wall());
  if (!duration.ok()) return Fail(duration.status());
  request.set_for_ms(absl::ToInt64Milliseconds(*duration));
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  auto response = (*client)->ControlDevices(request);
  if (!response.ok()) return Fail(response.status());
  if (flags.wait) {
    if (absl::Status status = AwaitDrained(**client, &*response);
        !status.ok()) {
      return Fail(status);
    }
  }
  const int exit_code = Print(*response, flags.json);
  if (!flags.json && SwitchesPower(request.command())) {
    std::cout << "Its power command runs now; `regatta device history ID` says "
                 "when it fails, and when the board is back.\n";
  }
  return exit_code;
}

AddedCommand AddVerb(CLI::App& parent, const Verb& verb) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = parent.add_subcommand(VerbName(verb.command), verb.help);
  AddDeviceSelection(command, &flags->devices);
  CLI::Option* reason = command
                            ->add_option("--reason", flags->reason,
                                         "Why, for those who find the board so")
                            ->type_name("TEXT")
                            ->check(Utf8Text())
                            ->check(SaysSomething());
  if (verb.needs_reason) reason->required();
  if (verb.takes_time) AddHoldTime(command, &flags->time);
  if (verb.drains) {
    command->add_flag("--wait", flags->wait,
                      "Return once the boards hold no work any more");
  }
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags, of = verb.command] {
            v1::ControlDevicesRequest request;
            request.set_command(of);
            return Carry(*flags, std::move(request));
          }};
}

AddedCommand AddLabel(CLI::App& parent) {
  auto flags = std::make_shared<Flags>();
  auto labels = std::make_shared<std::vector<std::string>>();
  CLI::App* command = parent.add_subcommand(
      "label", "Set labels of boards: NAME=VALUE; NAME= takes one away");
  AddDeviceSelection(command, &flags->devices);
  command->add_option("--set", *labels, "Label to set; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE")
      ->check(Utf8Text())
      ->required();
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags, labels] {
            v1::ControlDevicesRequest request;
            request.set_command(v1::DEVICE_COMMAND_LABEL);
            auto parsed = ParseLabels(*labels, /*values_required=*/true);
            if (!parsed.ok()) return Fail(parsed.status());
            for (const auto& [name, value] : *parsed) {
              (*request.mutable_labels())[name] = value;
            }
            return Carry(*flags, std::move(request));
          }};
}

struct HistoryFlags {
  ServerFlags server;
  DeviceSelection devices;
  int limit = 0;
  bool json = false;
};

int History(const HistoryFlags& flags) {
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  v1::DeviceHistoryRequest request;
  *request.mutable_devices() = flags.devices.ToProto();
  request.set_limit(flags.limit);
  auto response = (*client)->DeviceHistory(request);
  if (!response.ok()) return Fail(response.status());
  if (flags.json) {
    Json events = Json::array();
    for (const v1::DeviceEvent& event : response->events()) {
      events.push_back(EventDocument(event));
    }
    PrintJson({{"events", events}});
    return kExitDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"WHEN", "DEVICE", "WHAT", "BY", "REASON"}};
  for (const v1::DeviceEvent& event : response->events()) {
    rows.push_back({FormatWhen(event.unix_ms()),
                    event.device_id().empty()
                        ? absl::StrCat("class ", event.device_class())
                        : event.device_id(),
                    event.what(), event.by(), event.reason()});
  }
  if (rows.size() == 1) {
    std::cout << "Nothing has happened to these boards yet.\n";
  } else {
    std::cout << FormatTable(rows);
  }
  return kExitDone;
}

AddedCommand AddHistory(CLI::App& parent) {
  auto flags = std::make_shared<HistoryFlags>();
  CLI::App* command = parent.add_subcommand(
      "history",
      "What happened to boards, oldest first; all when none is "
      "named");
  AddDeviceSelection(command, &flags->devices);
  AddWholeNumber(command, "--limit", &flags->limit, 1, 20'000,
                 "The latest so many events. Default: 100");
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return History(*flags); }};
}

}  // namespace

AddedCommand AddDevice(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "device", "Approve, drain, reserve, quarantine boards; their history");
  std::vector<AddedCommand> added;
  for (const Verb& verb : kVerbs) added.push_back(AddVerb(*command, verb));
  added.push_back(AddLabel(*command));
  added.push_back(AddHistory(*command));
  return OneOf(command, std::move(added));
}

}  // namespace regatta::cli

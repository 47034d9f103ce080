#include <algorithm>
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/one_line.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/server_client.h"
#include "proto/device_build.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

struct Flags {
  ServerFlags server;
  bool json = false;
};

std::string LabelsOf(const v1::DeviceStanding& standing) {
  std::vector<std::string> labels;
  for (const auto& [name, value] : standing.labels()) {
    labels.push_back(absl::StrCat(name, "=", value));
  }
  std::sort(labels.begin(), labels.end());
  return labels.empty() ? "-" : absl::StrJoin(labels, " ");
}

// Why it takes no work, or is not believed yet; "" when all is well.
std::string NoteOn(const v1::DeviceStatus& device) {
  const v1::DeviceStanding& standing = device.standing();
  const std::string& id = device.info().device_id();
  if (standing.trust() == v1::TRUST_PENDING) {
    return absl::StrCat(id, " waits for approval: regatta device approve ", id);
  }
  if (!device.obstacle().empty()) {
    return absl::StrCat(id, " is ", device.obstacle());
  }
  if (device.presence() == v1::PRESENCE_LOST ||
      device.presence() == v1::PRESENCE_SUSPECT) {
    return absl::StrCat(id, " is ", PresenceName(device.presence()),
                        ": not heard of for ",
                        FormatSpan(device.last_seen_ms()));
  }
  if (standing.trust() == v1::TRUST_UNKNOWN) {
    return absl::StrCat(id, " is to be proven by a canary: ",
                        standing.trust_standing().reason());
  }
  return "";
}

void PrintDevices(const v1::ListDevicesResponse& response) {
  if (response.devices().empty()) {
    std::cout << "No board has registered. Start an agent on one: "
                 "regatta-agent --tracker HOST:PORT\n";
    return;
  }
  std::vector<std::vector<std::string>> rows = {
      {"ID", "KIND", "CLASS", "STATE", "SINCE", "TRUST", "HEALTH", "NOISE",
       "PEAK", "RUNS", "BUILT BY", "LABELS"}};
  std::vector<std::string> notes;
  for (const v1::DeviceStatus& device : response.devices()) {
    const v1::DeviceInfo& info = device.info();
    rows.push_back({
        info.device_id(),
        KindOf(info).empty() ? "-" : KindOf(info),
        (info.device_class().empty() ? "-" : info.device_class()) +
            (info.simulated() ? " (simulated)" : ""),
        device.state(),
        FormatSpan(device.state_since_ms()) + " ago",
        TrustName(device.standing().trust()),
        info.health(),
        info.has_noise_floor()
            ? absl::StrFormat("%.2f %%", info.noise_floor() * 100)
            : "unknown",
        info.peak_flops_per_s() > 0 ? FormatFlopRate(info.peak_flops_per_s())
                                    : "unknown",
        device.running_what().empty() ? "-" : device.running_what(),
        !device.measure_only()
            ? "itself"
            : (device.builder().empty() ? "nobody" : device.builder()),
        LabelsOf(device.standing()),
    });
    if (std::string note = NoteOn(device); !note.empty()) {
      notes.push_back(std::move(note));
    }
  }
  std::cout << FormatTable(rows);
  for (const std::string& note : notes) std::cout << OneLine(note) << "\n";
  std::cout << "Noise is the measured spread between two timings of one "
               "kernel; peak is f32, measured, of one core of a CPU or of the "
               "whole device.\n";
}

void PrintBuilders(const v1::ListDevicesResponse& response) {
  if (response.builders().empty()) return;
  std::vector<std::vector<std::string>> rows = {
      {"BUILDER", "BUILDS", "ANSWERED", "FOR", "KEY"}};
  for (const v1::BuilderStatus& builder : response.builders()) {
    std::vector<std::string> kinds;
    for (const v1::KindReach& kind : builder.reach().kinds()) {
      kinds.push_back(kind.kind());
    }
    rows.push_back({builder.agent_id(),
                    absl::StrCat(builder.building(), " of ", builder.slots()),
                    absl::StrCat(builder.answered()),
                    absl::StrJoin(kinds, ", "),
                    absl::BytesToHexString(builder.public_key())});
  }
  std::cout << "\n"
            << FormatTable(rows)
            << "Builders build for boards whose operators named their key.\n";
}

int Run(const Flags& flags) {
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  auto response = (*client)->ListDevices();
  if (!response.ok()) return Fail(response.status());
  if (flags.json) {
    Json devices = Json::array();
    for (const v1::DeviceStatus& device : response->devices()) {
      devices.push_back(DeviceDocument(device));
    }
    Json builders = Json::array();
    for (const v1::BuilderStatus& builder : response->builders()) {
      builders.push_back(BuilderDocument(builder));
    }
    PrintJson({{"devices", devices}, {"builders", builders}});
    return kExitDone;
  }
  PrintDevices(*response);
  PrintBuilders(*response);
  return kExitDone;
}

}  // namespace

AddedCommand AddDevices(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "devices", "Boards: class, state, health, noise floor, what they run");
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/server_client.h"
#include "proto/device_build.h"

namespace regatta::cli {
namespace {

struct Flags {
  ServerFlags server;
  bool json = false;
};

void PrintDevices(const v1::ListDevicesResponse& response) {
  if (response.devices().empty()) {
    std::cout << "No board has registered. Start an agent on one: "
                 "regatta-agent --tracker HOST:PORT\n";
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"ID", "KIND", "CLASS", "STATE",
                                                 "SINCE", "HEALTH", "NOISE",
                                                 "PEAK", "RUNS", "BUILT BY"}};
  for (const v1::DeviceStatus& device : response.devices()) {
    const v1::DeviceInfo& info = device.info();
    rows.push_back({
        info.device_id(),
        KindOf(info),
        info.device_class() + (info.simulated() ? " (simulated)" : ""),
        device.state(),
        FormatSpan(device.state_since_ms()) + " ago",
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
    });
  }
  std::cout << FormatTable(rows)
            << "Noise is the measured spread between two timings of one "
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

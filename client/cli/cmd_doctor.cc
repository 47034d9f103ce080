#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/one_line.h"
#include "client/cli/commands.h"
#include "client/cli/doctor/device.h"
#include "client/cli/doctor/doctor.h"
#include "client/cli/doctor/events.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/server_address.h"
#include "client/cli/server_client.h"

namespace regatta::cli {
namespace {

struct Flags {
  DoctorOptions options;
  std::string device;
  bool json = false;
};

struct Examined {
  std::string area;
  std::vector<Finding> findings;
};

// The log that `regatta up` keeps here, where nobody names one.
std::string LogOfUp() {
  const std::string path = DefaultStateDir() + "/tuning.db";
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : "";
}

absl::StatusOr<std::vector<Examined>> ExamineBoard(const Flags& flags) {
  auto client = ConnectServer(flags.options.server);
  if (!client.ok()) return client.status();
  auto fleet = (*client)->ListDevices();
  if (!fleet.ok()) return fleet.status();
  for (const v1::DeviceStatus& device : fleet->devices()) {
    if (device.info().device_id() != flags.device) continue;
    std::vector<Finding> findings = ExamineDevice(device, *fleet);
    v1::DeviceHistoryRequest request;
    request.mutable_devices()->add_device_ids(flags.device);
    const auto history = (*client)->DeviceHistory(request);
    // One that no builder has described yet has none.
    if (!history.ok() && !absl::IsNotFound(history.status())) {
      return history.status();
    }
    if (history.ok()) {
      for (Finding& finding : ExamineEvents(*history)) {
        findings.push_back(std::move(finding));
      }
    }
    return std::vector<Examined>{{"board", std::move(findings)}};
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the tracker knows no device ", flags.device,
                   "; `regatta devices` lists them"));
}

std::vector<Examined> ExamineHere(const Flags& flags) {
  DoctorOptions options = flags.options;
  if (options.log.empty()) options.log = LogOfUp();
  std::vector<Examined> examined;
  for (const Area& area : Areas()) {
    examined.push_back({area.name, area.examine(options)});
  }
  return examined;
}

void Print(const std::vector<Examined>& examined) {
  for (const Examined& area : examined) {
    for (const Finding& finding : area.findings) {
      const std::string name = absl::StrCat(area.area, ", ", finding.check);
      std::cout << LevelName(finding.level)
                << std::string(finding.level == Level::kOk ? 4 : 2, ' ') << name
                << ": " << OneLine(finding.what) << "\n";
      if (!finding.remedy.empty()) {
        std::cout << "      do: " << OneLine(finding.remedy) << "\n";
      }
    }
  }
}

Json Document(const std::vector<Examined>& examined, int fails, int warnings) {
  Json checks = Json::array();
  for (const Examined& area : examined) {
    for (const Finding& finding : area.findings) {
      checks.push_back({{"area", area.area},
                        {"check", finding.check},
                        {"level", LevelName(finding.level)},
                        {"what", finding.what},
                        {"remedy", TextOrNull(finding.remedy)}});
    }
  }
  return {{"ok", fails == 0},
          {"fails", fails},
          {"warnings", warnings},
          {"checks", checks}};
}

int Run(const Flags& flags) {
  std::vector<Examined> examined;
  if (flags.device.empty()) {
    examined = ExamineHere(flags);
  } else {
    auto board = ExamineBoard(flags);
    if (!board.ok()) return Fail(board.status());
    examined = *std::move(board);
  }
  int fails = 0, warnings = 0;
  for (const Examined& area : examined) {
    for (const Finding& finding : area.findings) {
      fails += finding.level == Level::kFail ? 1 : 0;
      warnings += finding.level == Level::kWarn ? 1 : 0;
    }
  }
  if (flags.json) {
    PrintJson(Document(examined, fails, warnings));
  } else {
    Print(examined);
    std::cout << fails << " failed, " << warnings << " warning(s)\n";
  }
  return fails == 0 ? kExitDone : kExitFailed;
}

}  // namespace

AddedCommand AddDoctor(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Say what is wrong here, or with a board, and what to do about it");
  command
      ->add_option("--device", flags->device,
                   "A board instead of this machine, by its id")
      ->check(NotEmpty())
      ->type_name("ID");
  command
      ->add_option("--log", flags->options.log,
                   "Tuning log to look at. Default: the one of `regatta up` in "
                   "its default folder, where there is one")
      ->check(NotEmpty())
      ->type_name("FILE");
  command
      ->add_option("--fleet-config", flags->options.fleet_config,
                   "The tracker's file of the fleet to look at; its webhook "
                   "gets a test event")
      ->check(NotEmpty())
      ->type_name("FILE");
  AddServerFlag(command, &flags->options.server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

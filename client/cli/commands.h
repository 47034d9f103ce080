// The commands, each in cmd_NAME.cc. See Command::add for what these return.
#ifndef REGATTA_CLIENT_CLI_COMMANDS_H_
#define REGATTA_CLIENT_CLI_COMMANDS_H_

#include <utility>

#include "client/cli/command.h"

namespace regatta::cli {

using AddedCommand = std::pair<CLI::App*, CommandBody>;

AddedCommand AddUp(CLI::App& app);
AddedCommand AddDevices(CLI::App& app);
AddedCommand AddDevice(CLI::App& app);
AddedCommand AddTune(CLI::App& app);
AddedCommand AddJobs(CLI::App& app);
AddedCommand AddCancel(CLI::App& app);
AddedCommand AddResume(CLI::App& app);
AddedCommand AddBest(CLI::App& app);
AddedCommand AddRecords(CLI::App& app);
AddedCommand AddCompile(CLI::App& app);
AddedCommand AddRun(CLI::App& app);
AddedCommand AddOps(CLI::App& app);
AddedCommand AddLog(CLI::App& app);
AddedCommand AddDoctor(CLI::App& app);
AddedCommand AddCerts(CLI::App& app);
AddedCommand AddAudit(CLI::App& app);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMMANDS_H_

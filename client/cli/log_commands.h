// The subcommands of `regatta log`, each in cmd_log_NAME.cc. A new one is such
// a file and a line in the list of cmd_log.cc.
#ifndef REGATTA_CLIENT_CLI_LOG_COMMANDS_H_
#define REGATTA_CLIENT_CLI_LOG_COMMANDS_H_

#include "client/cli/commands.h"

namespace regatta::cli {

AddedCommand AddLogExport(CLI::App& log);
AddedCommand AddLogImport(CLI::App& log);
AddedCommand AddLogBackup(CLI::App& log);
AddedCommand AddLogCheck(CLI::App& log);
AddedCommand AddLogRebuild(CLI::App& log);
AddedCommand AddLogRestore(CLI::App& log);
AddedCommand AddLogSnapshot(CLI::App& log);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_LOG_COMMANDS_H_

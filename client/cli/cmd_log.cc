// `regatta log`: looking after a tuning log.
#include "client/cli/command_group.h"
#include "client/cli/log_commands.h"

namespace regatta::cli {
namespace {

// THE list, in the order of `regatta log --help`.
constexpr Command kCommands[] = {
    {AddLogExport},  {AddLogImport},   {AddLogBackup},  {AddLogCheck},
    {AddLogRebuild}, {AddLogSnapshot}, {AddLogRestore},
};

}  // namespace

AddedCommand AddLog(CLI::App& app) {
  return AddGroup(app, "log",
                  "Look after the tuning log: a server's, or a file",
                  kCommands);
}

}  // namespace regatta::cli

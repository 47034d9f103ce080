// `regatta log`: looking after a tuning log.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
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
  CLI::App* command = app.add_subcommand(
      "log", "Look after the tuning log: a server's, or a file");
  command->require_subcommand(0, 1);
  std::vector<AddedCommand> added;
  std::string names;
  for (const Command& subcommand : kCommands) {
    added.push_back(subcommand.add(*command));
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    added.back().first->get_name());
  }
  return {command, [added, names] {
            for (const auto& [subcommand, body] : added) {
              if (subcommand->parsed()) return body();
            }
            PrintError(
                absl::StrCat("log: a subcommand is required; there "
                             "are: ",
                             names));
            return kExitUsage;
          }};
}

}  // namespace regatta::cli

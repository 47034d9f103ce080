#include "client/cli/command_group.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"

namespace regatta::cli {

AddedCommand AddGroup(CLI::App& app, const std::string& name,
                      const std::string& help,
                      absl::Span<const Command> subcommands) {
  CLI::App* command = app.add_subcommand(name, help);
  command->require_subcommand(0, 1);
  std::vector<AddedCommand> added;
  std::string names;
  for (const Command& subcommand : subcommands) {
    added.push_back(subcommand.add(*command));
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    added.back().first->get_name());
  }
  return {command, [added, name, names] {
            for (const auto& [subcommand, body] : added) {
              if (subcommand->parsed()) return body();
            }
            PrintError(absl::StrCat(
                name, ": a subcommand is required; there are: ", names));
            return kExitUsage;
          }};
}

}  // namespace regatta::cli

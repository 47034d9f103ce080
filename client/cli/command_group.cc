#include "client/cli/command_group.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"

namespace regatta::cli {

AddedCommand OneOf(CLI::App* command, std::vector<AddedCommand> subcommands) {
  command->require_subcommand(0, 1);
  // Else a word that is none is refused before anybody says which there are.
  command->allow_extras();
  std::string names;
  for (const AddedCommand& added : subcommands) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", added.first->get_name());
  }
  return {command, [command, names, added = std::move(subcommands)] {
            const std::string& name = command->get_name();
            if (const auto extras = command->remaining(); !extras.empty()) {
              PrintError(absl::StrCat(name, ": there is no subcommand '",
                                      extras.front(), "'; there are: ", names));
              return kExitUsage;
            }
            for (const auto& [subcommand, body] : added) {
              if (subcommand->parsed()) return body();
            }
            PrintError(absl::StrCat(
                name, ": a subcommand is required; there are: ", names));
            return kExitUsage;
          }};
}

AddedCommand AddGroup(CLI::App& app, const std::string& name,
                      const std::string& help,
                      absl::Span<const Command> subcommands) {
  CLI::App* command = app.add_subcommand(name, help);
  std::vector<AddedCommand> added;
  for (const Command& subcommand : subcommands) {
    added.push_back(subcommand.add(*command));
  }
  return OneOf(command, std::move(added));
}

}  // namespace regatta::cli

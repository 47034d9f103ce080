// A command that only holds subcommands, such as `regatta log`.
#ifndef REGATTA_CLIENT_CLI_COMMAND_GROUP_H_
#define REGATTA_CLIENT_CLI_COMMAND_GROUP_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/commands.h"

namespace regatta::cli {

// Runs the one of the subcommands of `command` that was given. None, or a word
// that is none, is bad usage, and lists them.
AddedCommand OneOf(CLI::App* command, std::vector<AddedCommand> subcommands);

// A command of these, as OneOf has it. `subcommands` live on.
AddedCommand AddGroup(CLI::App& app, const std::string& name,
                      const std::string& help,
                      absl::Span<const Command> subcommands);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMMAND_GROUP_H_

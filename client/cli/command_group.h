// A command that only holds subcommands, such as `regatta log`.
#ifndef REGATTA_CLIENT_CLI_COMMAND_GROUP_H_
#define REGATTA_CLIENT_CLI_COMMAND_GROUP_H_

#include <string>

#include "absl/types/span.h"
#include "client/cli/commands.h"

namespace regatta::cli {

// One without a subcommand is bad usage, and lists them. `subcommands` live on.
AddedCommand AddGroup(CLI::App& app, const std::string& name,
                      const std::string& help,
                      absl::Span<const Command> subcommands);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMMAND_GROUP_H_

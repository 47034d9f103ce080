// One subcommand of `regatta`: its flags and what it does. A new command is a
// file cmd_NAME.cc and one line in command_list.cc.
#ifndef REGATTA_CLIENT_CLI_COMMAND_H_
#define REGATTA_CLIENT_CLI_COMMAND_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "regatta/v1/trial.pb.h"

namespace regatta::cli {

// Runs the command after its flags were read; returns an exit code.
using CommandBody = std::function<int()>;

struct Command {
  // Adds the subcommand with its flags to `app` and returns it with its body.
  // What the flags are read into lives as long as the body.
  std::pair<CLI::App*, CommandBody> (*add)(CLI::App& app);
};

// THE list, in the order of `regatta --help`.
absl::Span<const Command> Commands();

// ---- flags that several commands share ----

struct ServerFlags {
  std::string server;  // --server; empty: look it up
};
void AddServerFlag(CLI::App* command, ServerFlags* flags);

void AddJsonFlag(CLI::App* command, bool* json);
void AddWorkloadArgument(CLI::App* command, std::string* workload);

struct PolicyFlags {
  int threads = 1;
  std::string cache = "warm";
  v1::Policy ToProto() const;
};
void AddPolicyFlags(CLI::App* command, PolicyFlags* flags);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMMAND_H_

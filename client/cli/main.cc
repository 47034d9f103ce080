// regatta: the program for people. Commands are in cmd_*.cc; command_list.cc
// lists them.
#include <iostream>

#include "CLI/CLI.hpp"
#include "base/log.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"

int main(int argc, char** argv) {
  using namespace regatta::cli;
  regatta::SetLogProgram("regatta");
  CLI::App app(
      "Regatta races kernels: boards build and time schedules, a log remembers "
      "the best, the compiler uses it.");
  app.set_version_flag("--version", std::string("regatta ") + REGATTA_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, CommandBody>> commands;
  for (const Command& command : Commands()) {
    commands.push_back(command.add(app));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "regatta: " << error.what() << "\n"
              << "Run `regatta --help` or `regatta COMMAND --help` for usage."
              << std::endl;
    return kExitUsage;
  }
  for (const auto& [command, body] : commands) {
    if (command->parsed()) return body();
  }
  return kExitUsage;
}

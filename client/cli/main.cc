// regatta: the program for people. Commands are in cmd_*.cc; command_list.cc
// lists them.
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/log.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "proto/grpc_log_service.h"

namespace {

// A closed standard descriptor would be taken by the next file or socket, and
// what is printed would land there.
void KeepStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != fd) _exit(1);
  }
}

int BadUsage(const std::string& message) {
  regatta::cli::PrintError(message);
  std::cerr << "Run `regatta --help` or `regatta COMMAND --help` for usage."
            << std::endl;
  return regatta::cli::kExitUsage;
}

// Half a document must not look like a success.
int AfterPrinting(int exit_code) {
  std::cout.flush();
  if (std::cout) return exit_code;
  regatta::cli::PrintError("cannot write to standard output");
  return exit_code == regatta::cli::kExitDone ? regatta::cli::kExitFailed
                                              : exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace regatta::cli;
  KeepStandardDescriptors();
  regatta::SetLogProgram("regatta");
  regatta::KeepGrpcQuiet();
  regatta::SetLogThreshold(regatta::LogLevel::kWarning);
  CLI::App app(
      "Regatta races kernels: boards build and time schedules, a log remembers "
      "the best, the compiler uses it.");
  app.set_version_flag("--version", std::string("regatta ") + REGATTA_VERSION);
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, CommandBody>> commands;
  std::string names;
  bool known = argc < 2 || argv[1][0] == '-' || argv[1][0] == '\0';
  for (const Command& command : Commands()) {
    commands.push_back(command.add(app));
    const std::string& name = commands.back().first->get_name();
    names += (names.empty() ? "" : ", ") + name;
    known = known || name == argv[1];
  }
  if (!known) {
    return BadUsage(std::string("there is no subcommand '") + argv[1] +
                    "'; there are: " + names);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return AfterPrinting(app.exit(success));
  } catch (const CLI::ParseError& error) {
    return BadUsage(error.what());
  }
  for (const auto& [command, body] : commands) {
    if (command->parsed()) return AfterPrinting(body());
  }
  return BadUsage("a subcommand is required; there are: " + names);
}

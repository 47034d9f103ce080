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
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cli/server_address.h"
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

// --server, --tls, --insecure-plaintext.
void AddServerFlag(CLI::App* command, ServerFlags* flags);

void AddJsonFlag(CLI::App* command, bool* json);

// Refuses text that is no UTF-8: it could not cross the wire.
CLI::Validator Utf8Text();

// Refuses "", which would be taken for a flag that was not given.
CLI::Validator NotEmpty();

// `text` as a whole decimal number from `min` to `max`; throws
// CLI::ValidationError. CLI11's own conversion takes "0x10", reads "010" as 8
// and turns numbers that are too large into the largest one.
template <typename Integer>
Integer WholeNumber(const std::string& name, const std::string& text,
                    Integer min, Integer max) {
  Integer value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    throw CLI::ValidationError(
        name, absl::StrCat("'", text, "' is no whole number from ", min, " to ",
                           max));
  }
  return value;
}

template <typename Integer>
CLI::Option* AddWholeNumber(CLI::App* command, const std::string& name,
                            Integer* value, Integer min, Integer max,
                            const std::string& help) {
  return command
      ->add_option_function<std::string>(
          name,
          [=](const std::string& text) {
            *value = WholeNumber(name, text, min, max);
          },
          help)
      ->type_name("N");
}

// A finite decimal number from `min` to `max`.
CLI::Option* AddNumber(CLI::App* command, const std::string& name,
                       double* value, double min, double max,
                       const std::string& help);
// Required.
CLI::Option* AddWorkloadArgument(CLI::App* command, std::string* workload);

struct PolicyFlags {
  int threads = 1;
  std::string cache = "warm";
  v1::Policy ToProto() const;
};
void AddPolicyFlags(CLI::App* command, PolicyFlags* flags);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMMAND_H_

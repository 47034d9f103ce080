#include <iostream>

#include "base/clock.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "client/cli/certs_commands.h"
#include "client/cli/exit_code.h"

namespace regatta::cli {
namespace {

struct Flags {
  std::string authority;
  SubjectFlags subject;
  std::string out;
};

absl::Status Make(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority,
                   OpenAuthority(flags.authority));
  Authority::Scope scope;
  ASSIGN_OR_RETURN(scope.role, ParseRole(flags.subject.role));
  scope.name = flags.subject.name;
  scope.device_class = flags.subject.device_class;
  ASSIGN_OR_RETURN(
      const JoinToken token,
      authority->MakeToken(scope, RealClock().Wall(), kTokenLife, ThisUser()));
  if (flags.out.empty()) {
    std::cout << token.Text() << std::endl;
  } else {
    RETURN_IF_ERROR(ReplaceFile(flags.out, token.Text() + "\n", 0600));
  }
  std::cerr << "Good once, for " << kTokenLife / absl::Minutes(1)
            << " minutes; in a FILE of mode 0600: "
            << (scope.role == Role::kAgent
                    ? "regatta-agent --tracker HOST:PORT --tls DIR --join @FILE"
                    : "regatta certs join --enrol HOST:PORT --tls DIR @FILE")
            << std::endl;
  return absl::OkStatus();
}

int Run(const Flags& flags) {
  const absl::Status status = Make(flags);
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace

AddedCommand AddCertsToken(CLI::App& certs) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = certs.add_subcommand(
      "token",
      "Print a token that lets somebody in once, within 15 minutes, under this "
      "name or, without --name, one of its own choice");
  AddAuthorityFlag(command, &flags->authority);
  AddSubjectFlags(command, &flags->subject);
  command
      ->add_option("-o,--out", flags->out,
                   "The file to write it to, mode 0600, instead of printing it")
      ->type_name("FILE")
      ->check(NotEmpty());
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

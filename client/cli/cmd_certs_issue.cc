#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/certs/tls_folder.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/certs_commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/issue_folder.h"

namespace regatta::cli {
namespace {

struct Flags {
  std::string authority;
  SubjectFlags subject;
  std::string out;
  int days = 7;
  bool force = false;
};

// A key that is lost is a certificate that is: nobody's is replaced unasked.
absl::Status CheckVacant(const std::string& dir, absl::Time now) {
  if (HasNoIdentity(dir) || !WhySpent(dir, now).empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      dir,
      " has a key or a certificate already, which has neither run out nor, as "
      "far as is known here, been revoked; --force replaces them and keeps "
      "these as *.old, or name another folder with --out"));
}

absl::Status Issue(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority,
                   OpenAuthority(flags.authority));
  ASSIGN_OR_RETURN(const Role role, ParseRole(flags.subject.role));
  const Identity identity{.lab = authority->lab(),
                          .role = role,
                          .name = flags.subject.name,
                          .device_class = flags.subject.device_class};
  RETURN_IF_ERROR(CheckIdentity(identity));
  const std::string dir =
      flags.out.empty()
          ? absl::StrCat(flags.subject.role, "-", identity.name, ".tls")
          : flags.out;
  const absl::Time now = RealClock().Wall();
  if (!flags.force) RETURN_IF_ERROR(CheckVacant(dir, now));
  RETURN_IF_ERROR(SetPairAside(dir));
  RETURN_IF_ERROR(IssueFolder(authority.get(), dir, identity, now,
                              absl::Hours(24) * flags.days, ThisUser()));
  std::cout << IdentityUri(identity) << " until "
            << absl::FormatTime("%Y-%m-%d %H:%M UTC",
                                now + absl::Hours(24) * flags.days,
                                absl::UTCTimeZone())
            << "\nin " << dir << " (key.pem is secret: move it, do not copy "
            << "it)\n";
  return absl::OkStatus();
}

int Run(const Flags& flags) {
  const absl::Status status = Issue(flags);
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace

AddedCommand AddCertsIssue(CLI::App& certs) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = certs.add_subcommand(
      "issue", "Make a key and its certificate, in a folder for --tls");
  AddAuthorityFlag(command, &flags->authority);
  AddSubjectFlags(command, &flags->subject);
  command->get_option("--name")->required();
  command
      ->add_option("-o,--out", flags->out,
                   "The folder. Default: ROLE-NAME.tls here")
      ->type_name("DIR")
      ->check(NotEmpty());
  AddWholeNumber(command, "--days", &flags->days, 1, 365,
                 "How long it is good for (days); daemons renew theirs at half "
                 "of it")
      ->default_str("7");
  command->add_flag("--force", flags->force,
                    "Replace a key and a certificate that have not run out; "
                    "they stay as key.pem.old and cert.pem.old");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

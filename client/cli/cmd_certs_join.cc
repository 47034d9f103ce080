// `regatta certs join` and `renew`: what a person does on a machine of theirs;
// daemons do it by themselves.
#include <iostream>

#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/certs_commands.h"
#include "client/cli/exit_code.h"
#include "proto/security/credential_keeper.h"
#include "proto/security/enrolment_client.h"

namespace regatta::cli {
namespace {

struct JoinFlags {
  JoinOptions options;
};

int Join(const JoinFlags& flags) {
  auto identity = JoinLab(flags.options, RealClock());
  if (!identity.ok()) return Fail(identity.status());
  std::cout << IdentityUri(*identity) << " in " << flags.options.dir << "\n";
  return kExitDone;
}

struct RenewFlags {
  std::string dir;
  std::string tracker;
};

absl::Status Renew(const RenewFlags& flags) {
  RoleSet any;
  for (const Role role : kAllRoles) any = any | RoleSet{role};
  ASSIGN_OR_RETURN(const std::shared_ptr<TlsIdentity> tls,
                   TlsIdentity::Open(flags.dir, any, RealClock()));
  CertificateClient client(flags.tracker, tls);
  RETURN_IF_ERROR(RenewIdentity(
      tls.get(),
      [&client](const std::string& request) { return client.Renew(request); },
      RealClock().Wall()));
  std::cout << IdentityUri(tls->self()) << " until "
            << absl::FormatTime("%Y-%m-%d %H:%M UTC",
                                tls->material()->certificate.NotAfter(),
                                absl::UTCTimeZone())
            << "\n";
  return absl::OkStatus();
}

}  // namespace

AddedCommand AddCertsJoin(CLI::App& certs) {
  auto flags = std::make_shared<JoinFlags>();
  CLI::App* command = certs.add_subcommand(
      "join", "Get a certificate with a token; the key is made and stays here");
  JoinOptions* options = &flags->options;
  command
      ->add_option("token", options->token,
                   "@FILE with what `certs token` printed, or - for standard "
                   "input; the token itself would show to others on the "
                   "machine")
      ->required();
  command
      ->add_option("--enrol", options->address,
                   "Where the tracker lets newcomers join, HOST:PORT")
      ->type_name("HOST:PORT")
      ->required();
  command->add_option("--tls", options->dir, "Folder for the certificate")
      ->type_name("DIR")
      ->required()
      ->check(NotEmpty());
  command
      ->add_option("--name", options->name,
                   "The name to have, where the token leaves it open")
      ->type_name("NAME");
  command->add_flag("--force", options->replace,
                    "Replace a certificate that has not run out; a lab may "
                    "have revoked it without this machine's knowledge");
  return {command, [flags] { return Join(*flags); }};
}

AddedCommand AddCertsRenew(CLI::App& certs) {
  auto flags = std::make_shared<RenewFlags>();
  CLI::App* command = certs.add_subcommand(
      "renew", "Get the next certificate before this one ends");
  command->add_option("--tls", flags->dir, "Folder of the certificate")
      ->type_name("DIR")
      ->required()
      ->check(NotEmpty());
  command->add_option("--tracker", flags->tracker, "Address of the tracker")
      ->type_name("HOST:PORT")
      ->required();
  return {command, [flags] {
            const absl::Status status = Renew(*flags);
            return status.ok() ? kExitDone : Fail(status);
          }};
}

}  // namespace regatta::cli

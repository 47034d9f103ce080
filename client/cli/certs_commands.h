// The subcommands of `regatta certs`. A new one is a file cmd_certs_NAME.cc and
// a line in the list of cmd_certs.cc.
#ifndef REGATTA_CLIENT_CLI_CERTS_COMMANDS_H_
#define REGATTA_CLIENT_CLI_CERTS_COMMANDS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/authority.h"
#include "client/cli/commands.h"

namespace regatta::cli {

AddedCommand AddCertsInit(CLI::App& certs);
AddedCommand AddCertsIssue(CLI::App& certs);
AddedCommand AddCertsToken(CLI::App& certs);
AddedCommand AddCertsJoin(CLI::App& certs);
AddedCommand AddCertsRenew(CLI::App& certs);
AddedCommand AddCertsRevoke(CLI::App& certs);
AddedCommand AddCertsList(CLI::App& certs);

// --authority: the folder; "": AuthorityFolder().
void AddAuthorityFlag(CLI::App* command, std::string* dir);
// In the state folder, where `regatta up --tls` keeps it too.
std::string AuthorityFolder();
absl::StatusOr<std::unique_ptr<Authority>> OpenAuthority(
    const std::string& dir);
// Who runs this program, for the authority's log.
std::string ThisUser();

// What a certificate is to say of its owner.
struct SubjectFlags {
  std::string role;
  std::string name;
  std::string device_class;
};
void AddSubjectFlags(CLI::App* command, SubjectFlags* flags);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_CERTS_COMMANDS_H_

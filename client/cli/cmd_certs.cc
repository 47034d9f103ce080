// `regatta certs`: a lab's authority and its certificates.
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cli/certs_commands.h"
#include "client/cli/command_group.h"
#include "client/cli/server_address.h"

namespace regatta::cli {
namespace {

// THE list, in the order of `regatta certs --help`.
constexpr Command kCommands[] = {
    {AddCertsInit},  {AddCertsIssue},  {AddCertsToken}, {AddCertsJoin},
    {AddCertsRenew}, {AddCertsRevoke}, {AddCertsList},
};

}  // namespace

AddedCommand AddCerts(CLI::App& app) {
  return AddGroup(app, "certs",
                  "Who may come in: a lab's authority and its certificates",
                  kCommands);
}

std::string AuthorityFolder() { return DefaultStateDir() + "/authority"; }

void AddAuthorityFlag(CLI::App* command, std::string* dir) {
  command
      ->add_option("--authority", *dir,
                   "Folder of the lab's authority. Default: authority in the "
                   "state folder, where `regatta up --tls` keeps it")
      ->type_name("DIR")
      ->check(NotEmpty());
}

absl::StatusOr<std::unique_ptr<Authority>> OpenAuthority(
    const std::string& dir) {
  return Authority::Open(dir.empty() ? AuthorityFolder() : dir);
}

std::string ThisUser() { return absl::StrCat("user ", getuid()); }

void AddSubjectFlags(CLI::App* command, SubjectFlags* flags) {
  command
      ->add_option("--role", flags->role,
                   "viewer, submitter, operator or admin for people; agent, "
                   "server or tracker for daemons")
      ->type_name("ROLE")
      ->required();
  command->add_option("--name", flags->name, "Who it is, unique in its role")
      ->type_name("NAME");
  command
      ->add_option("--class", flags->device_class,
                   "Of an agent: the only device class that it may serve")
      ->type_name("CLASS");
}

}  // namespace regatta::cli

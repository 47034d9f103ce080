#include <iostream>

#include "base/clock.h"
#include "client/cli/certs_commands.h"
#include "client/cli/exit_code.h"

namespace regatta::cli {
namespace {

struct Flags {
  std::string authority;
  std::string lab = "lab";
};

int Run(const Flags& flags) {
  const std::string dir =
      flags.authority.empty() ? AuthorityFolder() : flags.authority;
  const absl::Status made = Authority::Init(dir, flags.lab, RealClock().Wall());
  if (!made.ok()) return Fail(made);
  auto authority = Authority::Open(dir);
  if (!authority.ok()) return Fail(authority.status());
  std::cout << "authority of lab " << (*authority)->lab() << " in " << dir
            << "\nSHA-256 " << (*authority)->certificate().Fingerprint()
            << "\nWhoever has ca.key is the lab: keep the folder on one "
               "machine, the tracker's.\n";
  return kExitDone;
}

}  // namespace

AddedCommand AddCertsInit(CLI::App& certs) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = certs.add_subcommand(
      "init", "Make a lab's authority, good for ten years");
  AddAuthorityFlag(command, &flags->authority);
  command->add_option("--lab", flags->lab, "The lab's name")
      ->type_name("NAME")
      ->capture_default_str();
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

// `regatta certs list` and `revoke`.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/certs_commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"

namespace regatta::cli {
namespace {

struct ListFlags {
  std::string authority;
  bool json = false;
};

std::string Minute(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

std::string State(const Authority::Entry& entry, absl::Time now) {
  if (!entry.revoked.empty()) return absl::StrCat("revoked: ", entry.revoked);
  // It was issued where the clock is ahead, or was then, or this one is behind.
  if (now < entry.not_before) {
    return absl::StrCat("not yet valid until ", Minute(entry.not_before));
  }
  return "good";
}

absl::Status List(const ListFlags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority,
                   OpenAuthority(flags.authority));
  const absl::Time now = RealClock().Wall();
  ASSIGN_OR_RETURN(const std::vector<Authority::Entry> entries,
                   authority->List(now));
  if (flags.json) {
    Json certificates = Json::array();
    for (const Authority::Entry& entry : entries) {
      certificates.push_back(
          {{"serial", entry.serial},
           {"identity", entry.uri},
           {"not_before_unix_s", absl::ToUnixSeconds(entry.not_before)},
           {"not_after_unix_s", absl::ToUnixSeconds(entry.not_after)},
           {"revoked", TextOrNull(entry.revoked)}});
    }
    PrintJson({{"lab", authority->lab()},
               {"ca_sha256", authority->certificate().Fingerprint()},
               {"certificates", certificates}});
    return absl::OkStatus();
  }
  std::vector<std::vector<std::string>> rows = {
      {"IDENTITY", "UNTIL", "STATE", "SERIAL"}};
  for (const Authority::Entry& entry : entries) {
    rows.push_back(
        {entry.uri, Minute(entry.not_after), State(entry, now), entry.serial});
  }
  std::cout << FormatTable(rows);
  return absl::OkStatus();
}

struct RevokeFlags {
  std::string authority;
  std::string what;
  std::string why;
};

absl::Status Revoke(const RevokeFlags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority,
                   OpenAuthority(flags.authority));
  ASSIGN_OR_RETURN(
      const int count,
      authority->Revoke(flags.what, flags.why, RealClock().Wall(), ThisUser()));
  std::cout << count << " certificate" << (count == 1 ? "" : "s")
            << " revoked; connections with " << (count == 1 ? "it" : "them")
            << " end within a minute wherever a tracker has this authority\n";
  return absl::OkStatus();
}

int Code(const absl::Status& status) {
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace

AddedCommand AddCertsList(CLI::App& certs) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App* command =
      certs.add_subcommand("list", "Certificates that have not expired");
  AddAuthorityFlag(command, &flags->authority);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Code(List(*flags)); }};
}

AddedCommand AddCertsRevoke(CLI::App& certs) {
  auto flags = std::make_shared<RevokeFlags>();
  CLI::App* command = certs.add_subcommand(
      "revoke", "Make certificates count no longer, and end their connections");
  AddAuthorityFlag(command, &flags->authority);
  command
      ->add_option("what", flags->what,
                   "A serial, or ROLE/NAME for all of its certificates")
      ->required();
  command->add_option("--reason", flags->why, "Why, for the list")
      ->type_name("TEXT")
      ->check(Utf8Text());
  return {command, [flags] { return Code(Revoke(*flags)); }};
}

}  // namespace regatta::cli

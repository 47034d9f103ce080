#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/server_client.h"

namespace regatta::cli {
namespace {

struct Flags {
  ServerFlags server;
  int64_t limit = 100;
  bool json = false;
};

int Run(const Flags& flags) {
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  auto response = (*client)->ListAudit(flags.limit);
  if (!response.ok()) return Fail(response.status());
  if (flags.json) {
    Json entries = Json::array();
    for (const v1::AuditEntry& entry : response->entries()) {
      entries.push_back({{"at_unix_ms", entry.at_unix_ms()},
                         {"daemon", entry.daemon()},
                         {"who", entry.who()},
                         {"from", TextOrNull(entry.from())},
                         {"what", entry.what()},
                         {"result", entry.result()},
                         {"count", entry.count()}});
    }
    PrintJson({{"entries", entries},
               {"incomplete", TextOrNull(response->incomplete())}});
    return kExitDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"TIME", "DAEMON", "WHO", "FROM", "WHAT", "RESULT", "COUNT"}};
  for (const v1::AuditEntry& entry : response->entries()) {
    rows.push_back({absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                                     absl::FromUnixMillis(entry.at_unix_ms()),
                                     absl::UTCTimeZone()),
                    entry.daemon(), entry.who(),
                    entry.from().empty() ? "-" : entry.from(), entry.what(),
                    entry.result(), absl::StrCat(entry.count())});
  }
  std::cout << FormatTable(rows);
  if (!response->incomplete().empty()) {
    std::cout << "The tracker's entries are missing: " << response->incomplete()
              << "\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddAudit(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "audit", "Privileged calls and refusals, of the tracker and the server");
  AddServerFlag(command, &flags->server);
  AddWholeNumber(command, "--limit", &flags->limit, int64_t{1}, int64_t{10'000},
                 "The newest so many of each daemon (count)")
      ->default_str("100");
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

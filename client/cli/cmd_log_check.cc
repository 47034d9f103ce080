#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/log_access.h"
#include "client/cli/log_commands.h"
#include "client/cli/rate_progress.h"

namespace regatta::cli {
namespace {

struct Flags {
  LogFlags log;
  bool json = false;
};

int Run(const Flags& flags) {
  auto log = OpenLog(flags.log, LogUse::kRead);
  if (!log.ok()) return Fail(log.status());
  RateProgress display("records", StderrIsTerminal(), RealClock());
  Json findings = Json::array();
  int64_t shown = 0;
  const auto check = (*log)->Check(
      [&](const LogFinding& found) {
        if (flags.json) {
          findings.push_back({{"where", found.where}, {"what", found.what}});
        } else {
          ++shown;
          display.Finish();
          std::cout << found.where << ": " << found.what << "\n";
        }
      },
      ShowOn(display));
  display.Finish();
  if (!check.ok()) return Fail(check.status());
  const int64_t records = check->records;
  const int64_t count = check->findings;
  if (flags.json) {
    PrintJson({{"log", (*log)->Place()},
               {"records", records},
               {"whole", count == 0},
               {"finding_count", count},
               {"findings", findings}});
  } else if (count == 0) {
    std::cout << "The log of " << (*log)->Place() << " is whole: " << records
              << " record(s) read, nothing wrong.\n";
  } else if (count > shown) {
    std::cout << "... and " << count - shown << " more\n";
  }
  if (count == 0) return kExitDone;
  PrintError(absl::StrCat("the log of ", (*log)->Place(), " is not whole: ",
                          count, " finding(s) in ", records, " record(s)"));
  return kExitFailed;
}

}  // namespace

AddedCommand AddLogCheck(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "check", "Read the whole log and say what is wrong with it");
  AddLogFlags(command, &flags->log);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

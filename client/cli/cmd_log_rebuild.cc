#include <iostream>
#include <memory>

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
  auto log = OpenLog(flags.log, LogUse::kWrite);
  if (!log.ok()) return Fail(log.status());
  RateProgress display("keys", StderrIsTerminal(), RealClock());
  const auto changed = (*log)->RebuildBest(ShowOn(display));
  display.Finish();
  if (!changed.ok()) return Fail(changed.status());
  if (flags.json) {
    PrintJson({{"log", (*log)->Place()}, {"changed", *changed}});
  } else {
    std::cout << "Best-known of " << (*log)->Place()
              << " derived from its records: " << *changed
              << " row(s) changed.\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddLogRebuild(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "rebuild", "Derive the best-known answers from the records again");
  AddLogFlags(command, &flags->log);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

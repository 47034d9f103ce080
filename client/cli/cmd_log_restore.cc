#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/log_access.h"
#include "client/cli/log_commands.h"
#include "client/cli/rate_progress.h"
#include "storage/sqlite/restore.h"

namespace regatta::cli {
namespace {

constexpr int kShownFindings = 10;

struct Flags {
  std::string backup;
  std::string log;
  bool force = false;
  bool json = false;
};

std::string WithoutScheme(const std::string& location) {
  return std::string(absl::StripPrefix(location, "sqlite:"));
}

int Run(const Flags& flags) {
  RateProgress display("entries", StderrIsTerminal(), RealClock());
  sqlite::RestoreOptions options;
  options.replace = flags.force;
  options.progress = ShowOn(display);
  int shown = 0;
  options.finding = [&](const LogFinding& found) {
    if (++shown > kShownFindings) return;
    display.Finish();
    PrintError(absl::StrCat(found.where, ": ", found.what));
  };
  auto restored = sqlite::RestoreLog(WithoutScheme(flags.backup),
                                     WithoutScheme(flags.log), options);
  display.Finish();
  // What is wrong is a file, not how the command was called.
  if (absl::IsInvalidArgument(restored.status()) ||
      absl::IsNotFound(restored.status())) {
    restored = absl::FailedPreconditionError(restored.status().message());
  }
  if (!restored.ok()) return Fail(restored.status());
  if (flags.json) {
    PrintJson({{"backup", flags.backup},
               {"log", restored->path},
               {"records", restored->records},
               {"jobs", restored->jobs},
               {"bytes", restored->bytes}});
  } else {
    std::cout << restored->path << ": restored from " << flags.backup << ", "
              << restored->records << " record(s) and " << restored->jobs
              << " job(s), " << FormatBytes(restored->bytes) << "\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddLogRestore(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "restore", "Put a backup in a log's place, after reading all of it");
  command->add_option("backup", flags->backup, "Backup to restore")
      ->check(NotEmpty())
      ->required();
  command
      ->add_option("--log", flags->log,
                   "Tuning log to become it; no process may hold it")
      ->check(NotEmpty())
      ->required();
  command->add_flag("--force", flags->force,
                    "Replace a log that holds records or jobs, for good");
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

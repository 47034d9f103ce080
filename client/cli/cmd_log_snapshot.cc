#include <iostream>
#include <memory>

#include "base/clock.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/file_output.h"
#include "client/cli/format.h"
#include "client/cli/log_access.h"
#include "client/cli/log_commands.h"
#include "client/cli/rate_progress.h"
#include "server/query/snapshot.h"

namespace regatta::cli {
namespace {

struct Flags {
  LogFlags log;
  std::string output;
  bool rebuild = false;
  bool json = false;
};

int Run(const Flags& flags) {
  const absl::Status free = CheckOutput(flags.output, {flags.log.log});
  if (!free.ok()) return Fail(free);
  auto log = OpenLog(flags.log, LogUse::kRead);
  if (!log.ok()) return Fail(log.status());
  RateProgress display("answers", StderrIsTerminal(), RealClock());
  auto bytes = (*log)->Snapshot(flags.rebuild, ShowOn(display));
  display.Finish();
  if (!bytes.ok()) return Fail(bytes.status());
  // What cannot be read again must not become a file.
  const auto snapshot = Snapshot::FromBytes(*bytes, flags.output);
  if (!snapshot.ok()) return Fail(snapshot.status());
  const absl::Status written =
      WriteFileAtomically(flags.output, *bytes, FileUse::kPrivate);
  if (!written.ok()) return Fail(written);
  if (flags.json) {
    PrintJson({{"log", (*log)->Place()},
               {"output", flags.output},
               {"workloads", (*snapshot)->workloads()},
               {"answers", (*snapshot)->rows()},
               {"file_bytes", bytes->size()},
               {"compiler_version", (*snapshot)->compiler_version()}});
  } else {
    std::cout << flags.output << ": " << (*snapshot)->rows()
              << " best-known answer(s) for " << (*snapshot)->workloads()
              << " workload(s), " << FormatBytes(bytes->size()) << ", from "
              << (*log)->Place() << "\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddLogSnapshot(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "snapshot", "Write the best-known answers to one immutable file");
  command
      ->add_option("-o,--output", flags->output,
                   "File to write; an old one is replaced")
      ->required();
  command->add_flag(
      "--rebuild", flags->rebuild,
      "Build again what another version of the compiler measured: where this "
      "one gives the same binary, answers stay exact. With --log; a server "
      "does so by itself");
  AddLogFlags(command, &flags->log);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

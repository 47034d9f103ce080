#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/file_output.h"
#include "client/cli/format.h"
#include "client/cli/log_access.h"
#include "client/cli/log_commands.h"
#include "client/cli/rate_progress.h"
#include "client/cli/stop_signal.h"
#include "storage/sqlite/log_file.h"
#include "storage/sqlite/log_place.h"
#include "storage/tuning_log.h"

namespace regatta::cli {
namespace {

struct Flags {
  LogFlags log;
  std::string file;
  bool force = false;
  bool json = false;
};

absl::StatusOr<std::unique_ptr<TuningLog>> OpenCopy(const std::string& path) {
  OpenOptions options;
  options.create = false;
  options.read_only = true;
  return OpenTuningLog(path, options);
}

// The file's place, held until the copy is in it. Refuses what must not be
// overwritten: a file without --force, and a log that a process has open in any
// case.
absl::StatusOr<std::unique_ptr<sqlite::LogPlace>> HoldPlace(
    const Flags& flags) {
  if (IsSameFile(flags.file, flags.log.log)) {
    return absl::FailedPreconditionError(
        absl::StrCat(flags.file, " is the log itself; name another file"));
  }
  auto place = sqlite::LogPlace::Hold(flags.file);
  RETURN_IF_ERROR(place.status());
  if (const auto file = (*place)->Occupied(); file && !flags.force) {
    return absl::FailedPreconditionError(absl::StrCat(
        *file, " exists; --force replaces it, or name another file"));
  }
  return place;
}

absl::StatusOr<int64_t> Backup(const Flags& flags, LogAccess& log) {
  ASSIGN_OR_RETURN(const std::unique_ptr<sqlite::LogPlace> place,
                   HoldPlace(flags));
  ASSIGN_OR_RETURN(StagedFile file,
                   StagedFile::Create(place->path(), FileUse::kPrivate));
  const std::atomic<bool>& stop = StopRequested();
  RateProgress display("pages", StderrIsTerminal(), RealClock());
  int64_t bytes = 0;
  RETURN_IF_ERROR(log.Backup(
      [&](std::string_view data) -> absl::Status {
        if (stop) return absl::CancelledError("the backup was stopped");
        bytes += static_cast<int64_t>(data.size());
        return file.Append(data);
      },
      ShowOn(display)));
  RETURN_IF_ERROR(file.Sync());
  // What cannot be opened is no backup.
  RETURN_IF_ERROR(
      Annotate(OpenCopy(file.temporary()).status(), "looking at the copy"));
  RETURN_IF_ERROR(place->Replace([&file] { return file.Commit(); }));
  return bytes;
}

// What belongs to a log is no place for another, whoever has it open.
absl::Status CheckPlace(const std::string& path) {
  const auto log = sqlite::DatabaseAt(path);
  if (!log || *log == path) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, " belongs to ", *log, ", a tuning log; name another file"));
}

int Run(const Flags& flags) {
  if (flags.file == "-") {
    return Fail(absl::InvalidArgumentError(
        "a backup goes to a file, not to standard output; name one (./- for a "
        "file of that name)"));
  }
  const absl::Status free = CheckPlace(flags.file);
  if (!free.ok()) return Fail(free);
  auto log = OpenLog(flags.log, LogUse::kRead);
  if (!log.ok()) return Fail(log.status());
  const auto bytes = Backup(flags, **log);
  if (!bytes.ok()) return Fail(bytes.status());
  if (flags.json) {
    PrintJson(
        {{"log", (*log)->Place()}, {"file", flags.file}, {"bytes", *bytes}});
  } else {
    std::cout << flags.file << ": a copy of the log of " << (*log)->Place()
              << ", " << FormatBytes(*bytes) << "\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddLogBackup(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "backup", "Copy the log to a file, while records arrive");
  command->add_option("file", flags->file, "File to write")->required();
  command->add_flag("--force", flags->force, "Replace a file that exists");
  AddLogFlags(command, &flags->log);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

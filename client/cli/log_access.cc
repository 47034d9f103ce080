#include "client/cli/log_access.h"

#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "client/cli/log_client.h"
#include "client/cli/server_address.h"
#include "client/cli/stop_signal.h"
#include "compiler/compile.h"
#include "server/query/snapshot_writer.h"
#include "server/query/spec_check.h"
#include "server/query/workload_info.h"
#include "storage/import_check.h"
#include "storage/tuning_log.h"

namespace regatta::cli {
namespace {

absl::StatusOr<std::unique_ptr<TuningLog>> OpenFile(const std::string& path,
                                                    LogUse use) {
  OpenOptions options;
  options.create = use == LogUse::kCreate;
  options.read_only = use == LogUse::kRead;
  options.holder = "regatta log";
  auto log = OpenTuningLog(path, options);
  // What is wrong is the file, not how the command was called.
  if (absl::IsInvalidArgument(log.status()) || absl::IsNotFound(log.status())) {
    return absl::FailedPreconditionError(log.status().message());
  }
  return log;
}

class FileLog : public LogAccess {
 public:
  FileLog(std::string path, std::unique_ptr<TuningLog> log)
      : path_(std::move(path)), log_(std::move(log)) {}
  // Of a log that the first import makes which brings something; nothing else
  // may be asked of it.
  explicit FileLog(std::string path) : path_(std::move(path)) {}

  std::string Place() const override { return path_; }
  absl::StatusOr<LogCheck> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) override {
    return log_->upkeep().Check(visit, progress);
  }
  absl::StatusOr<int64_t> RebuildBest(const UpkeepProgress& progress) override {
    return log_->RebuildBest(progress);
  }
  absl::StatusOr<std::string> Snapshot(
      bool rebuild, const UpkeepProgress& progress) override {
    const auto version = [](const Target& target) {
      return absl::StatusOr<std::string>(CompilerVersion(target));
    };
    SnapshotOptions options;
    options.compiler_version = CompilerVersion(Target());
    options.make_target = MakeTargetWith(CompleteTarget, version);
    options.progress = progress;
    if (rebuild) options.gives_binary = BuildOnTheSpot(BoardBinaryHash);
    return WriteSnapshot(*log_, options);
  }

  absl::Status Backup(const std::function<absl::Status(std::string_view)>& data,
                      const UpkeepProgress& progress) override {
    return log_->upkeep().StreamBackup(data, progress);
  }

  absl::Status Export(
      const std::function<bool(const v1::LogEntry&)>& visit) override {
    return log_->exchange().Export(visit);
  }

  absl::StatusOr<std::vector<v1::ImportVerdict>> Import(
      const std::string& name, std::vector<v1::LogEntry> entries) override {
    std::vector<const v1::LogEntry*> pointers;
    for (const v1::LogEntry& entry : entries) pointers.push_back(&entry);
    const ImportOptions options{.name = name,
                                .describe = DescribeWorkloadText,
                                .check_spec = check_spec_};
    if (log_ == nullptr) {
      RETURN_IF_ERROR(CheckImportName(name));
      if (auto verdicts = VerdictsOnNothing(pointers, options)) {
        return *std::move(verdicts);
      }
      ASSIGN_OR_RETURN(log_, OpenFile(path_, LogUse::kCreate));
    }
    return log_->exchange().Import(pointers, options);
  }

 private:
  const std::string path_;
  std::unique_ptr<TuningLog> log_;
  const std::function<absl::Status(const v1::TrialSpec&)> check_spec_ =
      MakeSpecCheck();
};

}  // namespace

UpkeepProgress ShowOn(RateProgress& display) {
  const std::atomic<bool>& stop = StopRequested();
  return [&](const std::string& phase, int64_t done, int64_t total) {
    display.Update(phase, done, total);
    return !stop;
  };
}

void AddLogFlags(CLI::App* command, LogFlags* flags) {
  CLI::Option* log = command->add_option(
      "--log", flags->log,
      "Work on this tuning log, which no server may hold, instead of a "
      "server's");
  AddServerFlag(command, &flags->server);
  log->check(NotEmpty());
  log->excludes(command->get_option("--server"));
}

absl::StatusOr<std::unique_ptr<LogAccess>> OpenLog(const LogFlags& flags,
                                                   LogUse use) {
  if (flags.log.empty()) {
    ASSIGN_OR_RETURN(ServerAddress address, ReachServer(flags.server));
    return MakeServerLog(std::move(address));
  }
  std::error_code unsaid;  // by opening it
  if (use == LogUse::kCreate && !std::filesystem::exists(flags.log, unsaid) &&
      !unsaid) {
    return std::make_unique<FileLog>(flags.log);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TuningLog> log, OpenFile(flags.log, use));
  return std::make_unique<FileLog>(flags.log, std::move(log));
}

}  // namespace regatta::cli

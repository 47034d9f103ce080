#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
#include "client/cli/t4_writer.h"
#include "compiler/ops/op.h"
#include "storage/log_line.h"

namespace regatta::cli {
namespace {

struct Flags {
  LogFlags log;
  std::string file;
  std::string format = "jsonl";
  std::string workload;
  std::string device_class;
  bool json = false;
};

// Where the bytes go: a file that appears whole, or standard output.
class Output {
 public:
  static absl::StatusOr<Output> Open(const std::string& path) {
    if (path == "-") return Output(std::nullopt);
    ASSIGN_OR_RETURN(StagedFile file,
                     StagedFile::Create(path, FileUse::kPrivate));
    return Output(std::move(file));
  }
  absl::Status Write(std::string_view bytes) {
    if (file_) return file_->Append(bytes);
    std::cout << bytes;
    if (std::cout) return absl::OkStatus();
    return absl::FailedPreconditionError("cannot write to standard output");
  }
  absl::Status Commit() { return file_ ? file_->Commit() : absl::OkStatus(); }

 private:
  explicit Output(std::optional<StagedFile> file) : file_(std::move(file)) {}
  std::optional<StagedFile> file_;
};

class Export {
 public:
  Export(const Flags& flags, std::string workload_key)
      : flags_(flags), workload_key_(std::move(workload_key)) {}

  absl::Status Run(LogAccess& log) {
    ASSIGN_OR_RETURN(Output output, Output::Open(flags_.file));
    const std::atomic<bool>& stop = StopRequested();
    RateProgress display("entries", StderrIsTerminal(), RealClock());
    absl::Status written;
    const absl::Status read = log.Export([&](const v1::LogEntry& entry) {
      if (entry.has_log()) total_ = TotalOf(entry.log());
      ++entries_;
      if (entry.has_record()) ++records_;
      written = output.Write(
          flags_.format == "t4" ? AsT4(entry) : PrintLogLine(entry) + "\n");
      if (written.ok() && stop) {
        written = absl::CancelledError("the export was stopped");
      }
      display.Update("exporting", entries_, total_);
      return written.ok();
    });
    display.Finish();
    RETURN_IF_ERROR(written);
    RETURN_IF_ERROR(read);
    RETURN_IF_ERROR(CheckClass());
    return output.Commit();
  }

  // Where standard output holds the export, standard error.
  void Report(const LogAccess& log) const {
    if (flags_.json) {
      Json document = {{"log", log.Place()},
                       {"file", flags_.file},
                       {"format", flags_.format},
                       {"entries", entries_},
                       {"records", records_}};
      if (flags_.format == "t4") {
        document["results"] = t4_.results();
        document["left_out"] = t4_.left_out();
      }
      PrintJson(document);
      return;
    }
    std::ostream& out = flags_.file == "-" ? std::cerr : std::cout;
    if (flags_.format == "t4") {
      out << flags_.file << ": " << t4_.results() << " result(s) of the log of "
          << log.Place() << "; " << t4_.left_out()
          << " record(s) that T4 has no word for are left out\n";
    } else {
      out << flags_.file << ": " << records_ << " record(s) in " << entries_
          << " line(s) of the log of " << log.Place() << "\n";
    }
  }

 private:
  static int64_t TotalOf(const v1::LogHead& head) {
    return head.workloads() + head.jobs() + head.records() +
           head.publications() + 2;
  }

  // A class that the log does not have is a mistake in its name.
  absl::Status CheckClass() const {
    if (flags_.device_class.empty() || classes_.contains(flags_.device_class)) {
      return absl::OkStatus();
    }
    return absl::NotFoundError(absl::StrCat(
        "no device class '", flags_.device_class, "' in the log; it has ",
        classes_.empty() ? "none" : absl::StrJoin(classes_, ", ")));
  }

  bool IsWanted(const v1::TrialResult& result) {
    const std::string& device_class = result.device_class().empty()
                                          ? result.spec().device_class()
                                          : result.device_class();
    classes_.insert(device_class);
    return (workload_key_.empty() ||
            result.spec().workload_key() == workload_key_) &&
           (flags_.device_class.empty() || device_class == flags_.device_class);
  }

  std::string AsT4(const v1::LogEntry& entry) {
    if (entry.has_log()) return t4_.Begin(entry.log().log_id());
    if (entry.has_end()) return t4_.End();
    if (!entry.has_record() || !IsWanted(entry.record().result())) return "";
    return t4_.Add(entry.record());
  }

  const Flags& flags_;
  const std::string workload_key_;  // "": any
  T4Writer t4_;
  std::set<std::string> classes_;  // with t4: that the log has records of
  int64_t total_ = 0, entries_ = 0, records_ = 0;
};

int Run(const Flags& flags) {
  std::string workload_key;
  if (flags.format != "t4" &&
      !(flags.workload.empty() && flags.device_class.empty())) {
    return Fail(absl::InvalidArgumentError(
        "--workload and --device-class are for --format t4; jsonl holds "
        "everything"));
  }
  if (flags.json && flags.file == "-") {
    return Fail(absl::InvalidArgumentError(
        "--json and - would both write to standard output"));
  }
  if (!flags.workload.empty()) {
    const auto workload = ParseWorkload(flags.workload);
    if (!workload.ok()) return Fail(workload.status());
    workload_key = workload->key;
  }
  if (flags.file != "-") {
    const absl::Status free = CheckOutput(flags.file, {flags.log.log});
    if (!free.ok()) return Fail(free);
  }
  auto log = OpenLog(flags.log, LogUse::kRead);
  if (!log.ok()) return Fail(log.status());
  Export job(flags, workload_key);
  const absl::Status status = job.Run(**log);
  if (!status.ok()) return Fail(status);
  job.Report(**log);
  return kExitDone;
}

}  // namespace

AddedCommand AddLogExport(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "export", "Write everything in the log to a file, a line per entry");
  command
      ->add_option("file", flags->file,
                   "File to write, whole or not at all; - : standard output")
      ->required();
  command
      ->add_option("--format", flags->format,
                   "jsonl: everything, for `regatta log import`; t4: results "
                   "for Kernel Tuner's tools")
      ->check(CLI::IsMember({"jsonl", "t4"}))
      ->capture_default_str();
  command
      ->add_option("--workload", flags->workload,
                   "With t4: only records of this workload")
      ->check(Utf8Text());
  command
      ->add_option("--device-class", flags->device_class,
                   "With t4: only records of this class of boards")
      ->check(Utf8Text());
  AddLogFlags(command, &flags->log);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

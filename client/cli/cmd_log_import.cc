#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/line_reader.h"
#include "client/cli/log_access.h"
#include "client/cli/log_commands.h"
#include "client/cli/rate_progress.h"
#include "client/cli/stop_signal.h"
#include "storage/log_line.h"

namespace regatta::cli {
namespace {

// Entries that are sent at once.
constexpr size_t kBatchEntries = 500;
constexpr size_t kBatchBytes = 1 << 20;
constexpr int64_t kShown = 10;

struct Flags {
  LogFlags log;
  std::string file;
  std::string name;
  bool all_errors = false;
  bool json = false;
};

struct RefusedLine {
  int64_t line = 0;
  std::string reason;
};

class Import {
 public:
  Import(const Flags& flags, std::string name, LogAccess& log)
      : flags_(flags),
        name_(std::move(name)),
        log_(log),
        display_("lines", StderrIsTerminal(), RealClock()) {}

  absl::Status Run(LineReader& reader) {
    const std::atomic<bool>& stop = StopRequested();
    std::string line;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
      if (!more) break;
      ++lines_;
      Take(line);
      if (pending_.size() >= kBatchEntries || pending_bytes_ >= kBatchBytes) {
        RETURN_IF_ERROR(Flush());
        display_.Update("importing", lines_, EstimateLines(reader));
        if (stop) {
          return absl::CancelledError(
              absl::StrCat("stopped after line ", lines_,
                           "; what was imported stays, the same command goes "
                           "on from there"));
        }
      }
    }
    return Flush();
  }

  void Report() {
    display_.Finish();
    if (flags_.json) {
      Json refused = Json::array();
      for (const RefusedLine& one : refused_lines_) {
        refused.push_back({{"line", one.line}, {"reason", one.reason}});
      }
      PrintJson({{"file", flags_.file},
                 {"log", log_.Place()},
                 {"name", name_},
                 {"lines", lines_},
                 {"added",
                  {{"records", records_},
                   {"publications", publications_},
                   {"jobs", jobs_},
                   {"workloads", workloads_}}},
                 {"known", known_},
                 {"refused", refused_},
                 {"refused_lines", refused},
                 {"complete", ended_}});
      return;
    }
    std::cout << flags_.file << ": " << lines_ << " line(s): " << records_
              << " record(s), " << publications_ << " publication(s), " << jobs_
              << " job(s) and " << workloads_
              << " workload(s) added to the log of " << log_.Place() << "; "
              << known_ << " known already; " << refused_ << " refused\n";
  }

  // After the end: what the person should know besides.
  void Note(bool read_to_end) const {
    if (refused_ > static_cast<int64_t>(refused_lines_.size())) {
      std::cerr << "regatta: ... and "
                << refused_ - static_cast<int64_t>(refused_lines_.size())
                << " more refused; --all-errors names them\n";
    }
    if (read_to_end && !ended_ && valid() > 0) {
      std::cerr << "regatta: note: " << flags_.file
                << " has no end line; it may be cut off\n";
    }
  }

  int64_t lines() const { return lines_; }
  // Of which the log has said what becomes of them, or whose form is wrong.
  int64_t judged() const {
    return records_ + publications_ + jobs_ + workloads_ + known_ + refused_;
  }
  int64_t valid() const { return lines_ - refused_; }

 private:
  struct Pending {
    int64_t line;
    v1::LogEntry entry;
  };

  void Take(const std::string& line) {
    auto entry = ParseLogLine(line);
    if (!entry.ok()) {
      // In its order among the verdicts that are still to come.
      pending_.push_back({lines_, v1::LogEntry()});
      unread_.emplace_back(lines_, std::string(entry.status().message()));
      return;
    }
    if (entry->has_end()) ended_ = true;
    pending_bytes_ += line.size();
    pending_.push_back({lines_, *std::move(entry)});
  }

  absl::Status Flush() {
    std::vector<v1::LogEntry> entries;
    for (Pending& pending : pending_) {
      if (pending.entry.entry_case() != v1::LogEntry::ENTRY_NOT_SET) {
        entries.push_back(pending.entry);
      }
    }
    std::vector<v1::ImportVerdict> verdicts;
    if (!entries.empty()) {
      ASSIGN_OR_RETURN(verdicts, log_.Import(name_, std::move(entries)));
    }
    size_t next_verdict = 0, next_unread = 0;
    for (const Pending& pending : pending_) {
      if (pending.entry.entry_case() == v1::LogEntry::ENTRY_NOT_SET) {
        Refuse(pending.line, unread_[next_unread++].second);
      } else {
        Count(pending, verdicts[next_verdict++]);
      }
    }
    pending_.clear();
    unread_.clear();
    pending_bytes_ = 0;
    return absl::OkStatus();
  }

  void Count(const Pending& pending, const v1::ImportVerdict& verdict) {
    if (verdict.status() == v1::ImportVerdict::STATUS_REFUSED) {
      return Refuse(pending.line, verdict.reason());
    }
    if (verdict.status() != v1::ImportVerdict::STATUS_ADDED) {
      ++known_;
      return;
    }
    switch (pending.entry.entry_case()) {
      case v1::LogEntry::kRecord:
        ++records_;
        return;
      case v1::LogEntry::kPublication:
        ++publications_;
        return;
      case v1::LogEntry::kJob:
        ++jobs_;
        return;
      default:
        ++workloads_;
    }
  }

  void Refuse(int64_t line, const std::string& reason) {
    ++refused_;
    if (!flags_.all_errors && refused_ > kShown) return;
    display_.Finish();
    PrintError(absl::StrCat(flags_.file, ":", line, ": ", reason));
    refused_lines_.push_back({line, reason});
  }

  int64_t EstimateLines(const LineReader& reader) const {
    if (reader.size() == 0 || reader.bytes_read() == 0) return 0;
    return static_cast<int64_t>(static_cast<double>(lines_) * reader.size() /
                                reader.bytes_read());
  }

  const Flags& flags_;
  const std::string name_;
  LogAccess& log_;
  RateProgress display_;
  std::vector<Pending> pending_;
  std::vector<std::pair<int64_t, std::string>> unread_;
  size_t pending_bytes_ = 0;
  int64_t lines_ = 0, known_ = 0, refused_ = 0;
  int64_t records_ = 0, publications_ = 0, jobs_ = 0, workloads_ = 0;
  std::vector<RefusedLine> refused_lines_;  // that were shown
  bool ended_ = false;
};

std::string NameOf(const Flags& flags) {
  if (!flags.name.empty()) return flags.name;
  if (flags.file == "-") return "stdin";
  return std::filesystem::path(flags.file).stem().string();
}

int Run(const Flags& flags) {
  // Before a log is made for it.
  auto reader = LineReader::Open(flags.file, kMaxLogLineBytes);
  if (!reader.ok()) return Fail(reader.status());
  auto log = OpenLog(flags.log, LogUse::kCreate);
  if (!log.ok()) return Fail(log.status());
  Import import(flags, NameOf(flags), **log);
  const absl::Status status = import.Run(*reader);
  // As every refused request: nothing on standard output.
  if (!status.ok() && import.judged() == 0) return Fail(status);
  if (status.ok() && import.valid() == 0) {
    PrintError(absl::StrCat(flags.file, ": no line was valid (", import.lines(),
                            " line(s) read)"));
    return kExitFailed;
  }
  import.Report();
  import.Note(/*read_to_end=*/status.ok());
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace

AddedCommand AddLogImport(CLI::App& log) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = log.add_subcommand(
      "import",
      "Take in what another log exported; what is known already is skipped");
  command->add_option("file", flags->file, "File to read; - : standard input")
      ->required();
  command
      ->add_option("--name", flags->name,
                   "Of where it is from, for people. Default: the file's name "
                   "without folder and extension")
      ->check(Utf8Text());
  command->add_flag("--all-errors", flags->all_errors,
                    "Name every line that is refused, not only the first 10");
  AddLogFlags(command, &flags->log);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

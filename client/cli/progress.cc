#include "client/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/format.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

// Between two lines where nothing can be rewritten.
constexpr absl::Duration kPlainInterval = absl::Seconds(5);
constexpr int kLinesPerTask = 3;

std::string Label(const v1::TaskStatus& task) {
  return absl::StrCat(task.workload(), " on ", task.device_class());
}

// "trial 37 of 200, 11.2/s, 15 s left".
std::string Trials(const v1::TaskStatus& task) {
  std::string text = absl::StrCat("trial ", task.trials());
  if (task.budget_trials() > 0) {
    absl::StrAppend(&text, " of ", task.budget_trials());
  }
  if (task.state() != v1::JOB_STATE_RUNNING) {
    return absl::StrCat(JobStateName(task.state()), ", ", text);
  }
  if (task.phase() == "search") {
    absl::StrAppendFormat(&text, ", %.1f/s, ", task.trials_per_s());
    absl::StrAppend(&text, task.remaining_ms() < 0
                               ? std::string("time left unknown")
                               : FormatSpan(task.remaining_ms()) + " left");
  } else if (task.phase() == "default") {
    absl::StrAppend(&text, ", measuring the default");
  } else if (task.phase() == "race") {
    absl::StrAppend(&text, ", racing the finalists");
  } else if (task.phase() == "confirm") {
    absl::StrAppend(&text, ", confirming against the default");
  }
  return text;
}

// "best 98.1 GFLOP/s (83 % of the measured peak); waiting: ..."; may be empty.
std::string BestAndReason(const v1::TaskStatus& task) {
  std::string text;
  if (task.best_ns() > 0) {
    text = absl::StrCat("best ", FormatAchieved(task, task.best_ns()));
  }
  if (!task.reason().empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", task.reason());
  }
  return text;
}

std::string Bar(const v1::TaskStatus& task) {
  constexpr int kWidth = 20;
  if (task.budget_trials() <= 0) return "";
  const int64_t filled = std::clamp<int64_t>(
      task.trials() * kWidth / task.budget_trials(), 0, kWidth);
  return absl::StrCat("[", std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), "] ");
}

}  // namespace

TerminalSize SizeOfTerminal() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 10 ||
      size.ws_row < 2) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

std::string ProgressLine(const v1::TaskStatus& task) {
  const std::string rest = BestAndReason(task);
  return absl::StrCat(Label(task), "  ", Trials(task), rest.empty() ? "" : ", ",
                      rest);
}

std::string FitLine(std::string line, size_t width) {
  if (line.size() <= width) return line;
  constexpr std::string_view kCut = "...";
  size_t end = width > kCut.size() ? width - kCut.size() : 0;
  while (end > 0 && (line[end] & 0xC0) == 0x80) --end;
  line.resize(end);
  return line.append(kCut.substr(0, width));
}

std::string ProgressDisplay::Erase() {
  if (lines_ == 0) return "";
  return absl::StrCat("\x1b[", std::exchange(lines_, 0), "A\r\x1b[J");
}

void ProgressDisplay::Note(std::string_view text) {
  if (!enabled_) return;
  out_ << Erase() << text << "\n" << std::flush;
}

void ProgressDisplay::Update(const v1::Job& job) {
  if (!enabled_) return;
  if (terminal_) {
    UpdateTerminal(job);
  } else {
    UpdatePlain(job);
  }
}

void ProgressDisplay::UpdatePlain(const v1::Job& job) {
  const SteadyTime now = clock_.Steady();
  if (printed_ && now - last_ < kPlainInterval && !IsEnded(job.state())) return;
  std::string text;
  for (const v1::TaskStatus& task : job.tasks()) {
    absl::StrAppend(&text, ProgressLine(task), "\n");
  }
  if (text != last_text_) out_ << text << std::flush;
  last_text_ = text;
  last_ = now;
  printed_ = true;
}

void ProgressDisplay::UpdateTerminal(const v1::Job& job) {
  const TerminalSize size = SizeOfTerminal();
  const bool roomy =
      static_cast<size_t>(job.tasks_size()) * kLinesPerTask < size.rows;
  std::vector<std::string> lines;
  for (const v1::TaskStatus& task : job.tasks()) {
    if (roomy) {
      lines.push_back(Label(task));
      lines.push_back(absl::StrCat("  ", Bar(task), Trials(task)));
      lines.push_back(absl::StrCat("  ", BestAndReason(task)));
    } else if (lines.size() + 1 < size.rows) {
      lines.push_back(absl::StrCat(Bar(task), ProgressLine(task)));
    }
  }
  std::string text = Erase();
  for (std::string& line : lines) {
    absl::StrAppend(&text, FitLine(std::move(line), size.columns - 1), "\n");
  }
  lines_ = static_cast<int>(lines.size());
  out_ << text << std::flush;
}

}  // namespace regatta::cli

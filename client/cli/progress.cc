#include "client/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/format.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

// Between two lines where nothing can be rewritten.
constexpr absl::Duration kPlainInterval = absl::Seconds(5);

size_t TerminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

std::string Trials(const v1::TaskStatus& task) {
  std::string text = absl::StrCat("trial ", task.trials());
  if (task.budget_trials() > 0) {
    absl::StrAppend(&text, " of ", task.budget_trials());
  }
  return text;
}

std::string Bar(const v1::TaskStatus& task) {
  constexpr int kWidth = 20;
  if (task.budget_trials() <= 0) return "";
  const int64_t filled = std::min<int64_t>(
      kWidth, task.trials() * kWidth / task.budget_trials());
  return absl::StrCat("[", std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), "] ");
}

}  // namespace

std::string ProgressLine(const v1::TaskStatus& task) {
  std::string line =
      absl::StrCat(task.workload(), " on ", task.device_class(), "  ");
  if (task.state() != v1::JOB_STATE_RUNNING) {
    absl::StrAppend(&line, JobStateName(task.state()), ", ", Trials(task));
    if (!task.reason().empty()) absl::StrAppend(&line, ": ", task.reason());
    return line;
  }
  absl::StrAppend(&line, Trials(task));
  if (task.phase() == "search") {
    absl::StrAppendFormat(&line, ", %.1f/s, ", task.trials_per_s());
    absl::StrAppend(&line, task.remaining_ms() < 0
                               ? std::string("time left unknown")
                               : FormatSpan(task.remaining_ms()) + " left");
  } else if (task.phase() == "default") {
    absl::StrAppend(&line, ", measuring the default");
  } else if (task.phase() == "race") {
    absl::StrAppend(&line, ", racing the finalists");
  } else if (task.phase() == "confirm") {
    absl::StrAppend(&line, ", confirming against the default");
  }
  if (task.best_ns() > 0) {
    absl::StrAppend(&line, ", best ", FormatAchieved(task, task.best_ns()));
  }
  if (!task.reason().empty()) absl::StrAppend(&line, "; ", task.reason());
  return line;
}

void ProgressDisplay::Update(const v1::Job& job) {
  if (!enabled_) return;
  const SteadyTime now = clock_.Steady();
  if (!terminal_) {
    if (printed_ && now - last_ < kPlainInterval && !IsEnded(job.state())) {
      return;
    }
    std::string text;
    for (const v1::TaskStatus& task : job.tasks()) {
      absl::StrAppend(&text, ProgressLine(task), "\n");
    }
    if (text != last_text_) std::cerr << text << std::flush;
    last_text_ = text;
    last_ = now;
    printed_ = true;
    return;
  }
  std::string text;
  if (lines_ > 0) absl::StrAppend(&text, "\x1b[", lines_, "A");
  const size_t width = TerminalWidth() - 1;
  lines_ = 0;
  for (const v1::TaskStatus& task : job.tasks()) {
    std::string line = Bar(task) + ProgressLine(task);
    if (line.size() > width) line.resize(width);
    absl::StrAppend(&text, "\r\x1b[2K", line, "\n");
    ++lines_;
  }
  std::cerr << text << std::flush;
}

void ProgressDisplay::Finish() { lines_ = 0; }

}  // namespace regatta::cli

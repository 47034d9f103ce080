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
// Tasks of a job that are shown each where nothing can be rewritten.
constexpr int kPlainTasks = 8;

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

// One line for the job and one a task: label, bar, trials, best. Where they do
// not fit, those that go on come first and the rest is counted.
std::vector<std::string> LinesOfTasks(const v1::Job& job,
                                      const TerminalSize& size) {
  std::vector<const v1::TaskStatus*> tasks;
  size_t widest = 0;
  for (const v1::TaskStatus& task : job.tasks()) {
    tasks.push_back(&task);
    widest = std::max(widest, Label(task).size());
  }
  // The last row holds the cursor.
  const size_t rows = size.rows - 1;
  const bool all = tasks.size() + 1 <= rows;
  size_t shown = tasks.size();
  if (!all) {
    std::stable_partition(tasks.begin(), tasks.end(),
                          [](const v1::TaskStatus* task) {
                            return task->state() == v1::JOB_STATE_RUNNING;
                          });
    shown = rows > 2 ? rows - 2 : 0;
  }
  // Two fifths of the line; what is measured needs the rest.
  const size_t width =
      std::min(widest, std::max<size_t>(12, size.columns * 2 / 5));
  std::vector<std::string> lines = {JobLine(job)};
  for (size_t i = 0; i < shown; ++i) {
    std::string label = FitLine(Label(*tasks[i]), width);
    label.append(width - std::min(width, label.size()), ' ');
    const std::string rest = BestAndReason(*tasks[i]);
    lines.push_back(absl::StrCat("  ", label, "  ", Trials(*tasks[i]),
                                 rest.empty() ? "" : ", ", rest));
  }
  if (!all) {
    lines.push_back(
        absl::StrCat("  and ", tasks.size() - shown, " more tasks"));
  }
  return lines;
}

}  // namespace

TerminalSize SizeOfTerminal(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 10 ||
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

std::string JobLine(const v1::Job& job) {
  int going = 0, paused = 0;
  int64_t trials = 0, budget = 0, left_ms = 0;
  double rate = 0;
  bool bounded = true, known = true;
  for (const v1::TaskStatus& task : job.tasks()) {
    const bool on = task.state() == v1::JOB_STATE_RUNNING ||
                    task.state() == v1::JOB_STATE_QUEUED;
    going += on;
    paused += task.state() == v1::JOB_STATE_PAUSED;
    trials += task.trials();
    budget += task.budget_trials();
    bounded = bounded && task.budget_trials() > 0;
    if (!on) continue;
    rate += task.trials_per_s();
    // They go on side by side, each to its own bound.
    known = known && task.remaining_ms() >= 0;
    left_ms = std::max(left_ms, task.remaining_ms());
  }
  std::string text = absl::StrCat("job ", job.job_id(), ": ", going, " of ",
                                  job.tasks_size(), " tasks go on");
  if (paused > 0) absl::StrAppend(&text, ", ", paused, " paused");
  absl::StrAppend(&text, "; trial ", trials);
  if (bounded) absl::StrAppend(&text, " of ", budget);
  if (going == 0) return text;
  absl::StrAppendFormat(&text, ", %.1f/s", rate);
  if (known) absl::StrAppend(&text, ", ", FormatSpan(left_ms), " left");
  return text;
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
  if (job.tasks_size() > 1) text = JobLine(job) + "\n";
  if (job.tasks_size() <= kPlainTasks) {
    for (const v1::TaskStatus& task : job.tasks()) {
      absl::StrAppend(&text, ProgressLine(task), "\n");
    }
  }
  if (text != last_text_) out_ << text << std::flush;
  last_text_ = text;
  last_ = now;
  printed_ = true;
}

void ProgressDisplay::UpdateTerminal(const v1::Job& job) {
  const TerminalSize size = SizeOfTerminal();
  std::vector<std::string> lines =
      job.tasks_size() == 1
          ? std::vector<std::string>{Label(job.tasks(0)),
                                     "  " + Bar(job.tasks(0)) +
                                         Trials(job.tasks(0)),
                                     "  " + BestAndReason(job.tasks(0))}
          : LinesOfTasks(job, size);
  std::string text = Erase();
  for (std::string& line : lines) {
    absl::StrAppend(&text, FitLine(std::move(line), size.columns - 1), "\n");
  }
  lines_ = static_cast<int>(lines.size());
  out_ << text << std::flush;
}

}  // namespace regatta::cli

#include "device_agent/measure/worker_ending.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "device_agent/run/exit_codes.h"

namespace regatta {
namespace {

constexpr size_t kMaxDetail = 400;

// The last line that is not blank, so that it fits one field.
std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : Utf8Beginning(lines.back(), kMaxDetail);
}

// What the run worker's own last line says; absent where the last line is not
// its own.
std::optional<std::string> OwnReason(const v1::Exited& exited) {
  static constexpr std::string_view kMark = " error regatta-run-worker: ";
  const std::string line = LastLine(exited.stderr_tail());
  const size_t mark = line.find(kMark);
  if (mark == std::string::npos) return std::nullopt;
  return line.substr(mark + kMark.size());
}

// The worker's own crash report, if it could write one.
std::string CrashReport(const v1::Exited& exited) {
  const std::vector<std::string> lines =
      absl::StrSplit(exited.stderr_tail(), '\n', absl::SkipWhitespace());
  const std::string expected = absl::StrCat("SIG", sigabbrev_np(exited.code()));
  const auto report =
      std::find_if(lines.rbegin(), lines.rend(), [&](const std::string& line) {
        return absl::StartsWith(line, expected);
      });
  return report == lines.rend() ? "" : Utf8Beginning(*report, kMaxDetail);
}

std::string Signal(const v1::Exited& exited, const std::string& stage) {
  if (std::string report = CrashReport(exited); !report.empty()) return report;
  return absl::StrCat("SIG", sigabbrev_np(exited.code()), " ", stage);
}

std::string MemoryDetail(const v1::Exited& exited, int64_t limit,
                         const std::string& stage) {
  return absl::StrFormat("needs more than the limit of %d MiB %s", limit >> 20,
                         stage);
}

Ending JudgeSignal(const v1::Exited& exited, const std::string& stage) {
  // The candidate's own signals are faults; this one, which the filter keeps it
  // from sending, comes from outside.
  if (exited.code() == SIGKILL) {
    return {v1::OUTCOME_DEVICE_FAULT,
            absl::StrCat("the worker was killed from outside ", stage)};
  }
  return {v1::OUTCOME_CRASHED, Signal(exited, stage)};
}

Ending JudgeExit(const v1::Exited& exited, const std::string& stage) {
  const std::optional<std::string> reason = OwnReason(exited);
  if (exited.code() == kRunWorkerFault && reason.has_value()) {
    return {v1::OUTCOME_DEVICE_FAULT, absl::StrCat("run worker: ", *reason)};
  }
  if (exited.code() == kRunWorkerBroken) {
    return {v1::OUTCOME_CRASHED,
            absl::StrCat("broke its worker ", stage, ": ",
                         reason.value_or("it could not even say how"))};
  }
  return {v1::OUTCOME_CRASHED, absl::StrCat("ended the process with exit code ",
                                            exited.code(), " ", stage)};
}

}  // namespace

Ending JudgeStarved(int64_t starved_ns, int64_t limit_ms,
                    const std::string& stage) {
  return {v1::OUTCOME_DEVICE_FAULT,
          absl::StrFormat("the board is overloaded: the worker waited %.1f s "
                          "for a processor %s, with a limit of %.1f s",
                          static_cast<double>(starved_ns) / 1e9, stage,
                          static_cast<double>(limit_ms) / 1e3)};
}

Ending JudgeRunWorker(const v1::Exited& exited, const std::string& stage,
                      int64_t wall_limit_ms, int64_t memory_limit_bytes) {
  if (exited.leftovers()) {
    return {v1::OUTCOME_DEVICE_FAULT,
            "something of the worker outlived 2 s of killing"};
  }
  switch (exited.reason()) {
    case v1::EXIT_REASON_EXITED:
      return JudgeExit(exited, stage);
    case v1::EXIT_REASON_SIGNALLED:
      return JudgeSignal(exited, stage);
    case v1::EXIT_REASON_KILLED_ON_REQUEST:
      return {v1::OUTCOME_CANCELLED, "stopped"};
    case v1::EXIT_REASON_WALL_LIMIT:
      return {v1::OUTCOME_TIMED_OUT,
              absl::StrFormat("killed after %.1f s %s", wall_limit_ms / 1e3,
                              stage)};
    case v1::EXIT_REASON_STARVED:
      return JudgeStarved(exited.starved_ns(), wall_limit_ms, stage);
    case v1::EXIT_REASON_MEMORY_LIMIT:
      return {v1::OUTCOME_OUT_OF_MEMORY,
              MemoryDetail(exited, memory_limit_bytes, stage)};
    case v1::EXIT_REASON_SANDBOX:
      return {v1::OUTCOME_SANDBOX_VIOLATION,
              exited.code() == SIGSYS
                  ? Signal(exited, stage)
                  : absl::StrCat(LastLine(exited.stderr_tail()), " ", stage)};
    default:
      return {v1::OUTCOME_DEVICE_FAULT, "the spawner gave no reason"};
  }
}

Ending JudgeBuildWorker(const v1::Exited& exited, int64_t memory_limit_bytes) {
  if (exited.leftovers()) {
    return {v1::OUTCOME_DEVICE_FAULT,
            "something of the build worker outlived 2 s of killing"};
  }
  const std::string last = LastLine(exited.stderr_tail());
  const std::string words = last.empty() ? "" : absl::StrCat(": ", last);
  switch (exited.reason()) {
    case v1::EXIT_REASON_EXITED:
      return {v1::OUTCOME_COMPILE_ERROR,
              absl::StrCat("the build worker ended with exit code ",
                           exited.code(), words)};
    case v1::EXIT_REASON_SIGNALLED:
      // No compiler sends itself this one.
      if (exited.code() == SIGKILL) {
        return {v1::OUTCOME_DEVICE_FAULT,
                "the build worker was killed from outside"};
      }
      return {v1::OUTCOME_COMPILE_ERROR,
              absl::StrCat("the build worker ended with SIG",
                           sigabbrev_np(exited.code()), words)};
    case v1::EXIT_REASON_MEMORY_LIMIT:
      return {v1::OUTCOME_OUT_OF_MEMORY,
              MemoryDetail(exited, memory_limit_bytes, "while building")};
    case v1::EXIT_REASON_KILLED_ON_REQUEST:
      return {v1::OUTCOME_CANCELLED, "stopped"};
    default:
      // The compiler's own calls are refused, not punished, and its tasks are
      // the compiler's business, not the candidate's.
      return {v1::OUTCOME_DEVICE_FAULT,
              absl::StrCat("the build worker was ended by the spawner (",
                           v1::ExitReason_Name(exited.reason()), ")", words)};
  }
}

}  // namespace regatta

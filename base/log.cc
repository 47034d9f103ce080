#include "base/log.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {
namespace {

std::string& Program() {
  static std::string* const program = new std::string("regatta");
  return *program;
}

LogLevel& Threshold() {
  static LogLevel threshold = LogLevel::kInfo;
  return threshold;
}

}  // namespace

void SetLogThreshold(LogLevel level) { Threshold() = level; }

void SetLogProgram(std::string_view name) { Program() = name; }

LogLine::~LogLine() {
  if (level_ < Threshold()) return;
  static constexpr const char* kNames[] = {"info", "warning", "error"};
  const std::string line = absl::StrCat(
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", RealClock().Wall(),
                       absl::UTCTimeZone()),
      " ", kNames[static_cast<int>(level_)], " ", Program(), ": ",
      stream_.str(), "\n");
  // A log line that cannot be written has nowhere else to go.
  [[maybe_unused]] ssize_t written = write(2, line.data(), line.size());
}

}  // namespace regatta

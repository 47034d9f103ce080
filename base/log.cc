#include "base/log.h"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/one_line.h"
#include "base/redact.h"
#include "base/strings.h"

namespace regatta {
namespace {

struct Settings {
  std::string program = "regatta";
  LogLevel threshold = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

Settings& Current() {
  static Settings* const settings = new Settings();
  return *settings;
}

// "base/log.cc:12", wherever the compiler was called from.
std::string Source(std::string_view file, int line) {
  const std::string_view root = REGATTA_SOURCE_DIR "/";
  if (file.starts_with(root)) file.remove_prefix(root.size());
  while (file.starts_with("../")) file.remove_prefix(3);
  return absl::StrCat(ToAbsl(file), ":", line);
}

std::string Json(std::string_view time, LogLevel level,
                 std::string_view program, std::string_view source,
                 std::string_view message,
                 const std::vector<LogField>& fields) {
  static constexpr const char* kNames[] = {"info", "warning", "error"};
  nlohmann::ordered_json line = {{"ts", time},
                                 {"severity", kNames[static_cast<int>(level)]},
                                 {"daemon", program},
                                 {"source", source},
                                 {"message", message}};
  for (const LogField& field : fields) {
    line[std::string(field.name)] = Redact(field.value);
  }
  // Text of others may be no UTF-8.
  return line.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

// A value as it stands where it is one word, else in quotes.
std::string Quoted(const std::string& value) {
  const bool word = !value.empty() &&
                    value.find_first_of(" \"=\\") == value.npos &&
                    OneLine(value) == value;
  // JSON leaves some control characters as they are.
  return word ? value
              : OneLine(nlohmann::json(value).dump(
                    -1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Write(const std::string& line) {
  // A log line that cannot be written has nowhere else to go.
  [[maybe_unused]] ssize_t written = write(2, line.data(), line.size());
}

void WriteLine(LogLevel level, std::string_view source,
               std::string_view message, const std::vector<LogField>& fields) {
  const std::string time = absl::FormatTime(
      "%Y-%m-%dT%H:%M:%E3SZ", RealClock().Wall(), absl::UTCTimeZone());
  Write(FormatLogLine(Current().format, time, level, Current().program, source,
                      message, fields));
}

}  // namespace

void SetLogThreshold(LogLevel level) { Current().threshold = level; }

void SetLogProgram(std::string_view name) { Current().program = name; }

void SetLogFormat(LogFormat format) {
  Current().format = format;
  setenv(kLogFormatVariable, format == LogFormat::kJson ? "json" : "text",
         /*overwrite=*/1);
}

void InheritLogFormat() {
  const char* value = std::getenv(kLogFormatVariable);
  const std::string_view name = value == nullptr ? "" : value;
  Current().format = name == "json" ? LogFormat::kJson : LogFormat::kText;
}

void ReportFailure(std::string_view message) {
  if (Current().format == LogFormat::kJson) {
    WriteLine(LogLevel::kError, "", message, {});
  } else {
    Write(absl::StrCat(Current().program, ": ", Redact(message), "\n"));
  }
}

std::ostream& operator<<(std::ostream& out, const LogField& field) {
  if (auto* stream = dynamic_cast<LogLine::Stream*>(&out)) {
    stream->fields.push_back(field);
  }
  return out;
}

std::string FormatLogLine(LogFormat format, std::string_view time,
                          LogLevel level, std::string_view program,
                          std::string_view source, std::string_view message,
                          const std::vector<LogField>& fields) {
  const std::string text = Redact(message);
  if (format == LogFormat::kJson) {
    return Json(time, level, program, source, text, fields) + "\n";
  }
  static constexpr const char* kNames[] = {"info", "warning", "error"};
  std::string line =
      absl::StrCat(ToAbsl(time), " ", kNames[static_cast<int>(level)], " ",
                   ToAbsl(program), ": ", OneLine(text));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", ToAbsl(field.name), "=",
                    Quoted(Redact(field.value)));
  }
  return line + "\n";
}

LogLine::~LogLine() {
  if (level_ < Current().threshold) return;
  WriteLine(level_, Source(file_, line_), stream_.str(), stream_.fields);
}

}  // namespace regatta

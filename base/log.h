// One line per event on standard error.
//
//   LOG(kInfo) << "listening on " << address;
//   LOG(kWarning) << LogEvent("lease_lost") << LogDevice(id) << LogTrial(trial)
//                 << "the lease of " << id << " ran out";
//
// As text: time, level, program, message, the fields as name=value, all control
// characters written out. As JSON: one object a line with ts (RFC 3339, UTC),
// severity (info, warning, error), daemon, source (file:line), message and the
// fields that were given, all of them text. docs/metrics.md lists the events.
//
// Nobody streams a secret. What looks like one is blotted out all the same
// (base/redact.h), for it may stand in text that comes from elsewhere.
//
// Thread-safe; a line is written by one write(2).
#ifndef REGATTA_BASE_LOG_H_
#define REGATTA_BASE_LOG_H_

#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regatta {

enum class LogLevel { kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// The format for this process and, through the environment variable, for those
// that it starts. Set at the start of main, as all of these.
inline constexpr char kLogFormatVariable[] = "REGATTA_LOG_FORMAT";
void SetLogFormat(LogFormat format);
// The one that the variable names; text without it.
void InheritLogFormat();
// The name that stands in every line.
void SetLogProgram(std::string_view name);
// Lines below this level are dropped; kInfo until set.
void SetLogThreshold(LogLevel level);

// For programs that end now: "PROGRAM: message", or as JSON an error line.
void ReportFailure(std::string_view message);

// What a line is about, for programs that read it. Not part of the message.
struct LogField {
  std::string_view name;  // a literal
  std::string value;
};
// What happened: one of the names in docs/metrics.md.
inline LogField LogEvent(std::string_view name) {
  return {"event", std::string(name)};
}
inline LogField LogDevice(std::string id) { return {"device", std::move(id)}; }
inline LogField LogAgent(std::string id) { return {"agent", std::move(id)}; }
inline LogField LogSession(std::string id) {
  return {"session", std::move(id)};
}
inline LogField LogTrial(std::string id) { return {"trial", std::move(id)}; }
inline LogField LogReason(std::string text) {
  return {"reason", std::move(text)};
}
inline LogField LogPeer(std::string who) { return {"peer", std::move(who)}; }

class LogLine {
 public:
  LogLine(LogLevel level, const char* file, int line)
      : level_(level), file_(file), line_(line) {}
  ~LogLine();
  std::ostream& stream() { return stream_; }

 private:
  friend std::ostream& operator<<(std::ostream& out, const LogField& field);
  struct Stream : std::ostringstream {
    std::vector<LogField> fields;
  };

  const LogLevel level_;
  const char* const file_;
  const int line_;
  Stream stream_;
};

// A field of the line that `out` is of; nothing on other streams.
std::ostream& operator<<(std::ostream& out, const LogField& field);

// The line that is written, its end included; for tests.
std::string FormatLogLine(LogFormat format, std::string_view time,
                          LogLevel level, std::string_view program,
                          std::string_view source, std::string_view message,
                          const std::vector<LogField>& fields);

}  // namespace regatta

#define LOG(level) \
  ::regatta::LogLine(::regatta::LogLevel::level, __FILE__, __LINE__).stream()

#endif  // REGATTA_BASE_LOG_H_

// One line per event on standard error: time, level, program, message.
//
//   LOG(kInfo) << "listening on " << address;
//
// Thread-safe; a line is written by one write(2).
#ifndef REGATTA_BASE_LOG_H_
#define REGATTA_BASE_LOG_H_

#include <sstream>
#include <string>
#include <string_view>

namespace regatta {

enum class LogLevel { kInfo, kWarning, kError };

// The name that stands in every line; set once at the start of main.
void SetLogProgram(std::string_view name);
// Lines below this level are dropped; kInfo until set. Once, likewise.
void SetLogThreshold(LogLevel level);

class LogLine {
 public:
  explicit LogLine(LogLevel level) : level_(level) {}
  ~LogLine();
  std::ostream& stream() { return stream_; }

 private:
  LogLevel level_;
  std::ostringstream stream_;
};

}  // namespace regatta

#define LOG(level) ::regatta::LogLine(::regatta::LogLevel::level).stream()

#endif  // REGATTA_BASE_LOG_H_

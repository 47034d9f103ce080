// Entries of a log as lines of a file: one JSON object a line,
// {"v":1,"record":{...}}. docs/log-format.md is the manual.
#ifndef REGATTA_STORAGE_LOG_LINE_H_
#define REGATTA_STORAGE_LOG_LINE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "regatta/v1/log_service.pb.h"

namespace regatta {

// In every line. Raised when a line of before cannot be read any more, or a
// line of now not by a program of before.
inline constexpr int kLogFormatVersion = 1;

// Longer lines are refused unread.
inline constexpr size_t kMaxLogLineBytes = size_t{8} << 20;

// Without the line break. REQUIRES: the entry is set.
std::string PrintLogLine(const v1::LogEntry& entry);

// InvalidArgument says what is wrong and where in the line. Whether the entry
// makes sense is for the import to see.
absl::StatusOr<v1::LogEntry> ParseLogLine(std::string_view line);

}  // namespace regatta

#endif  // REGATTA_STORAGE_LOG_LINE_H_

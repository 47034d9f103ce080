#include "storage/log_line.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "storage/json_message.h"

namespace regatta {
namespace {

constexpr std::string_view kVersionField = "{\"v\":";

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

std::string PrintLogLine(const v1::LogEntry& entry) {
  std::string object;
  AppendJson(entry, &object);
  return absl::StrCat(ToAbsl(kVersionField), kLogFormatVersion, ",",
                      object.substr(1));
}

absl::StatusOr<v1::LogEntry> ParseLogLine(std::string_view line) {
  if (line.size() > kMaxLogLineBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the line has ", line.size(), " bytes; at most ", kMaxLogLineBytes));
  }
  line = WithoutBlanks(line);
  if (line.empty()) return absl::InvalidArgumentError("the line is empty");
  // The version comes first, so that a line of another version is told from a
  // damaged one without understanding the rest.
  const size_t comma = line.find(',');
  int version = 0;
  if (line.substr(0, kVersionField.size()) != kVersionField ||
      comma == std::string_view::npos ||
      !absl::SimpleAtoi(ToAbsl(line.substr(kVersionField.size(),
                                           comma - kVersionField.size())),
                        &version)) {
    return absl::InvalidArgumentError(
        "no line of an exported log: it does not begin with {\"v\":1,");
  }
  if (version != kLogFormatVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the line has format ", version, ", this program reads ",
                     kLogFormatVersion, "; use a release that wrote it"));
  }
  // Blanks in its place, so that errors name the line's columns.
  const std::string object = absl::StrCat("{", std::string(comma, ' '),
                                          ToAbsl(line.substr(comma + 1)));
  v1::LogEntry entry;
  RETURN_IF_ERROR(ParseJson(object, &entry));
  if (entry.entry_case() == v1::LogEntry::ENTRY_NOT_SET) {
    return absl::InvalidArgumentError("the line holds nothing");
  }
  return entry;
}

}  // namespace regatta

// The whole of a small file, such as those of /proc and /sys, which may vanish
// or fail while being read.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_FILE_TEXT_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_FILE_TEXT_H_

#include <string>
#include <string_view>

namespace regatta {

// "" when it cannot be opened; what was read until an error otherwise. (A
// stream's buffer would throw.)
std::string FileText(const std::string& path);

// Its first line, without blanks around it; "" likewise.
std::string FirstLine(const std::string& path);

// Writes to a file that is there, in one call, as those of /proc and of control
// groups want it. False, with errno, where that failed.
bool WriteText(const std::string& path, std::string_view text);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_FILE_TEXT_H_

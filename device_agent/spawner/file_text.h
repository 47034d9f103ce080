// The whole of a small file, such as those of /proc and /sys, which may vanish
// or fail while being read.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_FILE_TEXT_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_FILE_TEXT_H_

#include <string>

namespace regatta {

// "" when it cannot be opened; what was read until an error otherwise. (A
// stream's buffer would throw.)
std::string FileText(const std::string& path);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_FILE_TEXT_H_

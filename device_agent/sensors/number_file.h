// Numbers in the files of /sys and /proc.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_NUMBER_FILE_H_
#define REGATTA_DEVICE_AGENT_SENSORS_NUMBER_FILE_H_

#include <optional>
#include <string>
#include <vector>

namespace regatta {

// The number that a file begins with; absent when there is none.
std::optional<double> ReadNumber(const std::string& path);

// Paths of a shell pattern, sorted.
std::vector<std::string> MatchingPaths(const std::string& pattern);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_NUMBER_FILE_H_

// Lists of processors as the kernel writes them: "0-1,4".
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_CPU_LIST_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_CPU_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta {

// Ascending, without repetition. InvalidArgument for anything but numbers and
// ranges of numbers below CPU_SETSIZE (1024); "" is an empty list.
absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text);

// REQUIRES: ascending.
std::string FormatCpuList(const std::vector<int>& cpus);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_CPU_LIST_H_

// Where this process is in the hierarchies of control groups.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_CGROUP_PLACES_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_CGROUP_PLACES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace regatta {

// The directories of its group and of the groups around that, innermost first,
// in the hierarchy of `controller` of version 1, or of version 2 when that is
// empty. Only existing ones; of those outside a container's view, none. `root`:
// of /proc and /sys, "" outside tests; part of the answers.
std::vector<std::string> CgroupPlaces(absl::string_view controller,
                                      const std::string& root = "");

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_CGROUP_PLACES_H_

#include "device_agent/spawner/cgroup_places.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {
namespace {

bool Has(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The group of this process, as the kernel writes it.
std::string OwnGroup(absl::string_view controller, const std::string& root) {
  std::string own;
  const std::string memberships = FileText(root + "/proc/self/cgroup");
  for (absl::string_view line : absl::StrSplit(memberships, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    if (controller.empty() ? parts[0] == "0" : Has(names, controller)) {
      own = parts[2];
    }
  }
  return own;
}

}  // namespace

std::vector<std::string> CgroupPlaces(absl::string_view controller,
                                      const std::string& root) {
  const std::string own = OwnGroup(controller, root);
  std::vector<std::string> places;
  const std::string mounts = FileText(root + "/proc/self/mountinfo");
  for (absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<std::string> halves = absl::StrSplit(line, " - ");
    if (halves.size() != 2) continue;
    const std::vector<std::string> left = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const std::vector<std::string> options = absl::StrSplit(right[2], ',');
    const bool wanted = controller.empty()
                            ? right[0] == "cgroup2"
                            : right[0] == "cgroup" && Has(options, controller);
    if (!wanted) continue;
    const std::string& top = left[3];
    const std::string mount = root + left[4];
    absl::string_view below = own;
    if (top != "/" && !absl::ConsumePrefix(&below, top)) below = "";
    std::string place = absl::StrCat(mount, below == "/" ? "" : below);
    for (;;) {
      if (access((place + "/cgroup.procs").c_str(), F_OK) == 0) {
        places.push_back(place);
      }
      if (place.size() <= mount.size()) break;
      place.resize(place.rfind('/'));
    }
    break;
  }
  return places;
}

}  // namespace regatta

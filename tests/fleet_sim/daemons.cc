#include "tests/fleet_sim/daemons.h"

#include <unistd.h>

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta::fleet_sim {

ProcessCost CostOf(pid_t pid) {
  ProcessCost cost;
  const std::string proc = absl::StrCat("/proc/", pid);
  std::istringstream status(testing::ReadFile(proc + "/status"));
  for (std::string name; status >> name;) {
    if (name == "VmRSS:") status >> cost.rss_bytes;
    if (name == "VmHWM:") status >> cost.peak_bytes;
    if (name == "Threads:") status >> cost.threads;
  }
  cost.rss_bytes *= 1024;
  cost.peak_bytes *= 1024;
  const std::string stat = testing::ReadFile(proc + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return cost;
  std::istringstream fields(stat.substr(end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  int64_t user = 0, system = 0;
  fields >> user >> system;
  cost.cpu = absl::Seconds(static_cast<double>(user + system) /
                           static_cast<double>(sysconf(_SC_CLK_TCK)));
  return cost;
}

Daemons::Daemons(std::string dir, std::vector<std::string> tracker_arguments,
                 std::vector<std::string> server_arguments)
    : daemons_(std::move(dir), REGATTA_PROGRAM_DIR) {
  daemons_.AddTracker(tracker_arguments);
  server_arguments.push_back("--no-rebuilds");
  daemons_.AddServer(server_arguments);
}

}  // namespace regatta::fleet_sim

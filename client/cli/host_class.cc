#include "client/cli/host_class.h"

#include <sched.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/compile.h"

namespace regatta::cli {

absl::StatusOr<Host> DescribeHost() {
  Host host;
  ASSIGN_OR_RETURN(host.target, HostTarget());
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
    host.cores = CPU_COUNT(&cpus);
    std::vector<std::string> list;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &cpus)) list.push_back(absl::StrCat(i));
    }
    host.cpu_list = absl::StrJoin(list, ",");
  }
  host.device_class = CpuDeviceClass(host.target, host.cores);
  return host;
}

}  // namespace regatta::cli

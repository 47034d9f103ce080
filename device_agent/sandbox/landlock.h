// Landlock: a process gives up, for itself and all that it starts, access to
// files, TCP and signals outside. Needs no privilege.
#ifndef REGATTA_DEVICE_AGENT_SANDBOX_LANDLOCK_H_
#define REGATTA_DEVICE_AGENT_SANDBOX_LANDLOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace regatta {

// The kernel's version of the interface; 0 without Landlock.
int LandlockVersion();

struct LandlockRules {
  std::vector<std::string> readable;    // below these: read
  std::vector<std::string> executable;  // below these: read and execute
  std::vector<std::string> writable;    // below these: everything but execute
  std::vector<int> executable_files;    // open files: read and execute
};

// Everything that the rules do not allow is refused from now on. Paths that do
// not exist are skipped. REQUIRES: no_new_privs. Internal names what failed;
// FailedPrecondition without Landlock.
absl::Status RestrictFiles(const LandlockRules& rules);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SANDBOX_LANDLOCK_H_

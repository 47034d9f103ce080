// What keeps candidates from doing harm here, and what is missing of it.
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/doctor/doctor.h"
#include "client/cli/own_directory.h"
#include "device_agent/spawner/spawner_client.h"

namespace regatta::cli {
namespace {

// Features of device_agent/sandbox/sandbox.h. `instead`: one that does for it.
struct Feature {
  const char* name;
  const char* instead;
  Level level;  // when it is missing
  const char* cost;
  const char* remedy;
};

constexpr Feature kFeatures[] = {
    {"no_new_privs", "", Level::kFail,
     "a candidate may gain privileges, and no system call is filtered",
     "a kernel of 3.5 or later"},
    {"uid", "userns", Level::kFail,
     "workers cannot be told apart from the agent's own user",
     "start the agent as root, or allow user namespaces: sysctl -w "
     "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000"},
    {"mountns", "", Level::kWarn,
     "workers may write wherever their user may; scratch space has no limit",
     "start the agent as root, or allow user namespaces (sysctl "
     "user.max_user_namespaces)"},
    {"netns", "", Level::kWarn, "workers reach the network",
     "start the agent as root, or allow user namespaces"},
    {"ipcns", "", Level::kWarn,
     "workers share memory segments with their user's other processes",
     "start the agent as root, or allow user namespaces"},
    {"cgroup_memory", "watch", Level::kWarn, "a worker's memory is not limited",
     ""},
    {"cgroup_pids", "watch", Level::kWarn,
     "a worker's processes are not limited", ""},
    {"cgroup_kill", "", Level::kWarn,
     "what a worker started is killed one by one and may outrun that",
     "a kernel of 5.14 or later with cgroup v2, delegated to the agent "
     "(systemd: Delegate=yes)"},
    {"seccomp", "", Level::kWarn,
     "system calls are not filtered: a hole in the kernel is a way out",
     "a kernel with CONFIG_SECCOMP_FILTER; in a container, a profile that lets "
     "filters be installed"},
    {"landlock", "", Level::kWarn, "workers may read what their user may read",
     "a kernel of 5.13 or later with landlock among its security modules "
     "(lsm=landlock,...)"},
    {"tight", "", Level::kWarn,
     "candidates run with the files and system calls of their worker", ""},
};

// By looking every 20 ms: works, but a burst is over before it is seen.
constexpr char kWatchRemedy[] =
    "cgroups that the agent may make: start it as root, or under systemd with "
    "Delegate=yes";

}  // namespace

std::vector<Finding> JudgeSandbox(const std::vector<std::string>& features) {
  const auto has = [&](const std::string& name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  };
  std::vector<Finding> findings;
  for (const Feature& feature : kFeatures) {
    if (has(feature.name)) {
      findings.push_back({Level::kOk, feature.name, "in force", ""});
    } else if (*feature.instead == '\0' || !has(feature.instead)) {
      findings.push_back({feature.level, feature.name,
                          absl::StrCat("missing: ", feature.cost),
                          feature.remedy});
    } else if (std::string_view(feature.instead) == "watch") {
      findings.push_back(
          {Level::kWarn, feature.name,
           "missing: limits are watched every 20 ms instead, so a burst is "
           "stopped late",
           kWatchRemedy});
    } else {
      findings.push_back(
          {Level::kOk, feature.name, absl::StrCat("by ", feature.instead), ""});
    }
  }
  return findings;
}

std::vector<Finding> ExamineSandbox(const DoctorOptions&) {
  const std::string spawner = OwnDirectory() + "/regatta-spawner";
  const auto client = SpawnerClient::Start(spawner);
  if (!client.ok()) {
    return {{Level::kFail, "spawner",
             absl::StrCat("the sandbox cannot be tried: ",
                          std::string(client.status().message())),
             "cmake --build --preset release --target regatta-spawner"}};
  }
  return JudgeSandbox((*client)->sandbox());
}

}  // namespace regatta::cli

#include "device_agent/sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/system_error.h"
#include "device_agent/probe/emulator.h"
#include "device_agent/sandbox/landlock.h"
#include "device_agent/sandbox/seccomp_filter.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {
namespace {

constexpr char kFeaturesVariable[] = "REGATTA_SANDBOX";
constexpr uid_t kBuildUser = 65533;
constexpr uid_t kRunUser = 65534;
// Of control groups: 100 is everybody's. A candidate is to be timed, a build is
// not; the agent and the spawner take next to nothing, but at once.
constexpr int kAgentWeight = 10'000;
constexpr int kRunWeight = 400;
constexpr int kBuildWeight = 100;
constexpr int kBuildNice = 10;
constexpr int64_t kMinFileBytes = 64 << 20;
constexpr int64_t kMinAddressSpace = int64_t{4} << 30;
constexpr rlim_t kOpenFiles = 256;

// Whether `action` succeeds in a child process.
bool WorksInChild(const std::function<bool()>& action) {
  const pid_t child = fork();
  if (child == 0) _exit(action() ? 0 : 1);
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && status == 0;
}

// A user namespace in which this user stays itself.
bool EnterUserNamespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  return unshare(CLONE_NEWUSER) == 0 &&
         WriteText("/proc/self/setgroups", "deny") &&
         WriteText("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")) &&
         WriteText("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1"));
}

// A private, read-only view of all files: no worker writes any.
bool EnterMountNamespace() {
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attributes,
                 sizeof(attributes)) == 0;
}

bool BecomeUser(uid_t user) {
  return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 &&
         setresuid(user, user, user) == 0;
}

// Threads and processes of `user` on this machine.
int TasksOf(uid_t user) {
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return 0;
  int tasks = 0;
  while (const dirent* entry = readdir(processes)) {
    int pid = 0;
    struct stat info;
    const std::string path = absl::StrCat("/proc/", entry->d_name, "/task");
    if (absl::SimpleAtoi(entry->d_name, &pid) &&
        stat(path.c_str(), &info) == 0 && info.st_uid == user) {
      tasks += static_cast<int>(info.st_nlink) - 2;
    }
  }
  closedir(processes);
  return tasks;
}

// Of the operator's environment: where a toolkit and libraries are that stand
// in no folder of the system.
constexpr char kToolkitVariable[] = "CUDA_PATH";
constexpr char kLibraryVariable[] = "LD_LIBRARY_PATH";

// That workers of `role` read, each absolute, none of them everything.
std::vector<std::string> LibraryFolders(const std::string& role) {
  std::vector<std::string> folders;
  if (const char* libraries = getenv(kLibraryVariable)) {
    folders = absl::StrSplit(libraries, ':');
  }
  const char* toolkit = role == "build" ? getenv(kToolkitVariable) : nullptr;
  if (toolkit != nullptr) folders.emplace_back(toolkit);
  std::erase_if(folders, [](const std::string& folder) {
    return folder.find_first_not_of('/') == std::string::npos ||
           folder[0] != '/';
  });
  return folders;
}

absl::Status SetLimit(decltype(RLIMIT_CORE) resource, rlim_t value,
                      absl::string_view name) {
  struct rlimit now;
  if (getrlimit(resource, &now) == 0) value = std::min(value, now.rlim_max);
  const struct rlimit limit = {value, value};
  if (setrlimit(resource, &limit) != 0) {
    return SystemError(absl::StrCat("limit of ", name));
  }
  return absl::OkStatus();
}

}  // namespace

Sandbox Sandbox::Probe(const std::set<std::string>& without) {
  Sandbox sandbox;
  sandbox.emulated_ = !FindEmulator().value_or("").empty();
  const auto add = [&](const std::string& feature, bool there) {
    if (there && without.count(feature) == 0) sandbox.features_.insert(feature);
  };
  add("no_new_privs",
      WorksInChild([] { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; }));
  add("rlimits", true);
  add("process_group", true);
  add("subreaper", prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  const bool root = geteuid() == 0;
  add("uid", root && WorksInChild([] { return BecomeUser(kRunUser); }) &&
                 WorksInChild([] { return BecomeUser(kBuildUser); }));
  add("userns", !root && WorksInChild(EnterUserNamespace));
  const bool may_unshare = root || sandbox.Has("userns");
  const auto unshares = [&](int flag) {
    return may_unshare && WorksInChild([&] {
             return (root || EnterUserNamespace()) && unshare(flag) == 0;
           });
  };
  add("netns", unshares(CLONE_NEWNET));
  add("ipcns", unshares(CLONE_NEWIPC));
  add("mountns", may_unshare && WorksInChild([&] {
                   return (root || EnterUserNamespace()) &&
                          EnterMountNamespace();
                 }));
  if (sandbox.Has("no_new_privs")) {
    add("seccomp", SeccompAvailable());
    add("landlock", LandlockVersion() > 0);
    add("tight", sandbox.Has("seccomp"));
  }
  ScratchFolder::RemoveStale({geteuid(), kBuildUser, kRunUser});
  // The spawner's parent is the agent.
  if (without.count("cgroup") == 0) {
    sandbox.cgroups_ = CgroupTree::Probe(getppid());
  }
  if (without.count("cpu_weight") == 0) {
    sandbox.cgroups_.WeighAgent(getppid(), kAgentWeight);
  }
  for (const std::string& feature : sandbox.cgroups_.Features()) {
    add(feature, true);
  }
  add("nice", !sandbox.Has("cpu_weight"));
  add("watch", !sandbox.Has("cgroup_memory") || !sandbox.Has("cgroup_pids"));
  return sandbox;
}

absl::Status Sandbox::EnterSharedNamespaces() const {
  if (Has("userns") && !EnterUserNamespace()) {
    return SystemError("user namespace");
  }
  const int flags =
      (Has("netns") ? CLONE_NEWNET : 0) | (Has("ipcns") ? CLONE_NEWIPC : 0);
  if (flags != 0 && unshare(flags) != 0) {
    return SystemError("network and IPC namespaces");
  }
  return absl::OkStatus();
}

absl::Status Sandbox::LimitResources(const WorkerLimits& limits) const {
  RETURN_IF_ERROR(SetLimit(RLIMIT_CORE, 0, "core dumps"));
  RETURN_IF_ERROR(SetLimit(RLIMIT_NOFILE, kOpenFiles, "open files"));
  RETURN_IF_ERROR(SetLimit(RLIMIT_MSGQUEUE, 0, "message queues"));
  if (limits.memory_bytes > 0) {
    // Memory files count as files, so they may fill the memory but no more.
    RETURN_IF_ERROR(SetLimit(RLIMIT_FSIZE,
                             std::max(limits.memory_bytes, kMinFileBytes),
                             "file size"));
#if !__has_feature(address_sanitizer)
    // Address space is no memory: guards and stacks are reserved and never
    // touched. Only what outruns the watch is stopped here.
    if (!Has("cgroup_memory") && !limits.reserves_addresses) {
      RETURN_IF_ERROR(SetLimit(
          RLIMIT_AS, std::max(2 * limits.memory_bytes, kMinAddressSpace),
          "address space"));
    }
#endif
  }
  return absl::OkStatus();
}

int CpuWeightOf(const std::string& role) {
  return role == "run" ? kRunWeight : kBuildWeight;
}

std::optional<uid_t> Sandbox::UserOf(const std::string& role) const {
  if (!Has("uid")) return std::nullopt;
  return role == "run" ? kRunUser : kBuildUser;
}

absl::StatusOr<std::unique_ptr<ScratchFolder>> Sandbox::MakeScratch(
    const std::string& role, int64_t bytes) const {
  return ScratchFolder::Create(UserOf(role), bytes);
}

absl::Status Sandbox::ChangeUser(const std::string& role) const {
  const std::optional<uid_t> user = UserOf(role);
  if (user.has_value() && !BecomeUser(*user)) {
    return SystemError("changing the user");
  }
  if (role == "run" && geteuid() == 0) {
    return absl::FailedPreconditionError(
        "candidates never run as root: start the agent as another user, or "
        "with the right to change to user 65534");
  }
  return absl::OkStatus();
}

absl::Status Sandbox::RestrictPaths(const ChildSetup& setup) const {
  LandlockRules rules;
  rules.executable = {"/usr", "/lib", "/lib64", "/lib32", "/opt"};
  rules.readable = {"/etc", "/proc", "/sys", "/dev"};
  const std::vector<std::string> libraries = LibraryFolders(setup.role);
  for (const auto& more : {setup.programs, libraries}) {
    rules.executable.insert(rules.executable.end(), more.begin(), more.end());
  }
  rules.writable = setup.writable;
  rules.writable.push_back("/dev/null");
  if (setup.scratch != nullptr) {
    rules.writable.push_back(setup.scratch->path());
  }
  rules.executable_files = {setup.program};
  rules.executable_files.insert(rules.executable_files.end(),
                                setup.program_files.begin(),
                                setup.program_files.end());
  return RestrictFiles(rules);
}

absl::Status Sandbox::ApplyInChild(const ChildSetup& setup) const {
  const WorkerLimits& limits = setup.limits;
  if (setsid() < 0) return SystemError("session");
  if (setup.cgroup != nullptr) {
    for (const Cgroup::Membership& group : setup.cgroup->membership()) {
      if (group.unified && setup.forked_inside) continue;
      if (write(group.file.get(), "0", 1) != 1) return SystemError("cgroup");
    }
  }
  if (Has("nice") && setup.role == "build" &&
      setpriority(PRIO_PROCESS, 0, kBuildNice) != 0) {
    return SystemError("nice");
  }
  RETURN_IF_ERROR(LimitResources(limits));
  if (Has("mountns") && !EnterMountNamespace()) {
    return SystemError("mount namespace");
  }
  if (Has("mountns") && setup.scratch != nullptr) {
    RETURN_IF_ERROR(setup.scratch->MountMemory());
  }
  RETURN_IF_ERROR(ChangeUser(setup.role));
  // The kernel counts tasks by user, other programs' included. Set after the
  // user is changed, since it is checked then too.
  if (limits.max_tasks > 0 && !Has("cgroup_pids")) {
    RETURN_IF_ERROR(
        SetLimit(RLIMIT_NPROC, TasksOf(geteuid()) + limits.max_tasks, "tasks"));
  }
  // Cleared by a change of user, so set only now. The parent may have died
  // before; then nobody sends the signal any more.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
    return SystemError("death signal");
  }
  if (getppid() != setup.parent)
    return absl::InternalError("the spawner is gone");
  if (Has("no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return SystemError("no_new_privs");
  }
  if (Has("landlock")) RETURN_IF_ERROR(RestrictPaths(setup));
  if (Has("seccomp")) RETURN_IF_ERROR(InstallWorkerFilter());
  return absl::OkStatus();
}

std::vector<std::string> Sandbox::Environment() const {
  std::vector<std::string> environment = {
      "PATH=/usr/bin:/bin", "LANG=C", "HOME=/",
      absl::StrCat(kFeaturesVariable, "=", absl::StrJoin(features_, ","))};
  // What an execution prefix, a sanitizer, a simulated driver or a compiler
  // needs.
  for (const char* name :
       {"QEMU_LD_PREFIX", "QEMU_CPU", "ASAN_OPTIONS", "UBSAN_OPTIONS",
        "REGATTA_CUDA_SIM", kToolkitVariable, kLibraryVariable}) {
    if (const char* value = getenv(name)) {
      environment.push_back(absl::StrCat(name, "=", value));
    }
  }
  if (emulated_) environment.push_back(absl::StrCat(kEmulatedVariable, "=1"));
  return environment;
}

absl::Status TightenForCandidate() {
  const char* variable = getenv(kFeaturesVariable);
  const std::set<std::string> features =
      absl::StrSplit(variable == nullptr ? "" : variable, ',');
  if (features.count("landlock") > 0) RETURN_IF_ERROR(RestrictFiles({}));
  if (features.count("seccomp") > 0) RETURN_IF_ERROR(InstallCandidateFilter());
  return absl::OkStatus();
}

}  // namespace regatta

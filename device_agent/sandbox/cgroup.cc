#include "device_agent/sandbox/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "device_agent/spawner/cgroup_places.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {
namespace {

constexpr char kPrefix[] = "regatta-";
constexpr char kAgentSuffix[] = "-agent";  // of an AgentGroup
// What groups of version 2 limit.
constexpr const char* kControllers[] = {"memory", "pids", "cpu"};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The value after `key` in a file of "key value" lines; 0 when absent.
int64_t KeyedValue(const std::string& path, absl::string_view key) {
  const std::string text = FileText(path);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key) || !absl::ConsumePrefix(&line, " ")) {
      continue;
    }
    int64_t value = 0;
    if (absl::SimpleAtoi(line, &value)) return value;
  }
  return 0;
}

// Whether `group` is the one of an agent whose spawner has died: the agent is
// still inside, and so is whatever it started since.
bool Abandoned(const std::string& group) {
  absl::string_view name = group;
  name.remove_prefix(group.rfind('/') + 1);
  if (!absl::ConsumePrefix(&name, kPrefix) ||
      !absl::ConsumeSuffix(&name, kAgentSuffix)) {
    return false;
  }
  const std::string members = FileText(group + "/cgroup.procs");
  const std::vector<std::string> pids = absl::StrSplit(members, '\n');
  return std::count(pids.begin(), pids.end(), std::string(name)) == 0;
}

// This process's place, most specific first, without those of a spawner that
// has died.
std::vector<std::string> Places(absl::string_view controller) {
  std::vector<std::string> places = CgroupPlaces(controller);
  std::erase_if(places, Abandoned);
  return places;
}

// Removes groups below `parent` whose spawner is gone; those still populated
// refuse and stay.
void RemoveStale(const std::string& parent) {
  DIR* directory = opendir(parent.c_str());
  if (directory == nullptr) return;
  std::vector<std::string> stale;
  while (const dirent* entry = readdir(directory)) {
    absl::string_view name = entry->d_name;
    if (!absl::ConsumePrefix(&name, kPrefix)) continue;
    int pid = 0;
    if (absl::SimpleAtoi(name.substr(0, name.find('-')), &pid) &&
        kill(pid, 0) != 0 && errno == ESRCH) {
      stale.push_back(absl::StrCat(parent, "/", entry->d_name));
    }
  }
  closedir(directory);
  for (const std::string& path : stale) rmdir(path.c_str());
}

// Whether a child process can be put into `directory`.
bool CanJoin(const std::string& directory) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(WriteText(directory + "/cgroup.procs", "0") ? 0 : 1);
  }
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && status == 0;
}

std::vector<pid_t> MembersOf(const std::string& directory) {
  std::vector<pid_t> members;
  const std::string text = FileText(directory + "/cgroup.procs");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(line, &pid)) members.push_back(pid);
  }
  return members;
}

// Whether nobody else is a member of `directory`.
bool HoldsOnly(const std::string& directory, const std::vector<pid_t>& pids) {
  const std::vector<pid_t> members = MembersOf(directory);
  return !members.empty() &&
         std::all_of(members.begin(), members.end(), [&](pid_t member) {
           return std::count(pids.begin(), pids.end(), member) > 0;
         });
}

// `weight` as version 2 has it; version 1 counts in shares, 1024 for 100.
bool SetWeight(const std::string& directory, int weight) {
  const std::string file = directory + "/cpu.weight";
  if (Exists(file)) return WriteText(file, absl::StrCat(weight));
  return WriteText(directory + "/cpu.shares",
                   absl::StrCat(weight * 1024 / 100));
}

// The first of `places` in which a group can be made that a process can join
// and that has every one of `files`. Version 2 forbids groups with members
// beside limited children, so a delegated parent or the root may serve where
// the own group does not.
std::string FirstUsable(const std::vector<std::string>& places,
                        const std::vector<std::string>& files) {
  for (const std::string& place : places) {
    RemoveStale(place);
    if (Exists(place + "/cgroup.subtree_control")) {
      // Fails where it is forbidden or done already; the files tell.
      WriteText(place + "/cgroup.subtree_control", "+memory +pids");
    }
    const std::string probe =
        absl::StrCat(place, "/", kPrefix, getpid(), "-probe");
    if (mkdir(probe.c_str(), 0755) != 0) continue;
    const bool usable =
        std::all_of(files.begin(), files.end(),
                    [&](const std::string& file) {
                      return Exists(absl::StrCat(probe, "/", file));
                    }) &&
        CanJoin(probe);
    rmdir(probe.c_str());
    if (usable) return place;
  }
  return "";
}

}  // namespace

std::unique_ptr<AgentGroup> AgentGroup::Enter(std::string directory,
                                              std::string home,
                                              const std::vector<pid_t>& pids) {
  if (mkdir(directory.c_str(), 0755) != 0) return nullptr;
  std::unique_ptr<AgentGroup> group(
      new AgentGroup(std::move(directory), std::move(home)));
  for (const pid_t pid : pids) {
    if (!WriteText(group->directory_ + "/cgroup.procs", absl::StrCat(pid))) {
      return nullptr;
    }
  }
  return group;
}

AgentGroup::~AgentGroup() {
  for (const pid_t pid : MembersOf(directory_)) {
    const std::string number = absl::StrCat(pid);
    if (WriteText(home_ + "/cgroup.procs", number) || errno != EBUSY) continue;
    for (const char* controller : kControllers) {
      WriteText(home_ + "/cgroup.subtree_control",
                absl::StrCat("-", controller));
    }
    WriteText(home_ + "/cgroup.procs", number);
  }
  rmdir(directory_.c_str());
}

bool AgentGroup::SetWeight(int weight) {
  return regatta::SetWeight(directory_, weight);
}

void CgroupTree::WeighAgent(pid_t agent, int weight) {
  if (cpu_.empty() || agent <= 1) return;  // its agent is gone: init's child
  if (inner_ != nullptr && cpu_ == memory_) {
    has_weight_ = inner_->SetWeight(weight);
    return;
  }
  weighed_ = AgentGroup::Enter(
      absl::StrCat(cpu_, "/", kPrefix, getpid(), kAgentSuffix), cpu_home_,
      {getpid(), agent});
  has_weight_ = weighed_ != nullptr && weighed_->SetWeight(weight);
  if (!has_weight_) weighed_.reset();
  // That of an earlier spawner, which the agent has just left.
  RemoveStale(cpu_);
}

CgroupTree CgroupTree::Probe(pid_t agent) {
  CgroupTree tree;
  const std::vector<std::string> unified = Places("");
  const std::vector<std::string> files = {"memory.max", "pids.max",
                                          "cgroup.events"};
  std::string complete;
  if (!unified.empty()) complete = FirstUsable({unified[0]}, files);
  if (complete.empty() && !unified.empty() && agent > 1 &&
      HoldsOnly(unified[0], {getpid(), agent})) {
    tree.inner_ = AgentGroup::Enter(
        absl::StrCat(unified[0], "/", kPrefix, getpid(), kAgentSuffix),
        unified[0], {getpid(), agent});
    if (tree.inner_ != nullptr) complete = FirstUsable({unified[0]}, files);
    if (complete.empty()) tree.inner_.reset();
  }
  if (complete.empty()) complete = FirstUsable(unified, files);
  if (!complete.empty()) {
    // Apart from the others: all are refused where one is not there.
    WriteText(complete + "/cgroup.subtree_control", "+cpu");
    tree.cpu_ = FirstUsable({complete}, {"cpu.weight"});
    if (!tree.cpu_.empty()) tree.cpu_home_ = unified[0];
  }
  if (tree.cpu_.empty()) {
    const std::vector<std::string> places = Places("cpu");
    tree.cpu_ = FirstUsable(places, {"cpu.shares"});
    if (!tree.cpu_.empty()) tree.cpu_home_ = places[0];
  }
  if (!complete.empty()) {
    tree.memory_ = tree.pids_ = tree.unified_ = complete;
    tree.memory_v2_ = true;
    tree.has_kill_ = !FirstUsable({complete}, {"cgroup.kill"}).empty();
    return tree;
  }
  tree.unified_ = FirstUsable(unified, {"cgroup.kill", "cgroup.events"});
  tree.has_kill_ = !tree.unified_.empty();
  tree.memory_ = FirstUsable(Places("memory"), {"memory.limit_in_bytes"});
  tree.pids_ = FirstUsable(Places("pids"), {"pids.max"});
  return tree;
}

std::vector<std::string> CgroupTree::Features() const {
  std::vector<std::string> features;
  if (has_memory()) features.push_back("cgroup_memory");
  if (has_pids()) features.push_back("cgroup_pids");
  if (has_kill()) features.push_back("cgroup_kill");
  if (has_weight()) features.push_back("cpu_weight");
  return features;
}

absl::StatusOr<std::unique_ptr<Cgroup>> CgroupTree::Create(
    const CgroupLimits& limits) {
  const std::string name = absl::StrCat("/", kPrefix, getpid(), "-", next_++);
  std::unique_ptr<Cgroup> group(new Cgroup);
  group->memory_v2_ = memory_v2_;
  const auto make = [&](const std::string& parent,
                        std::string* directory) -> absl::Status {
    if (parent.empty()) return absl::OkStatus();
    *directory = parent + name;
    std::vector<std::string>& all = group->directories_;
    if (std::count(all.begin(), all.end(), *directory) > 0) {
      return absl::OkStatus();
    }
    if (mkdir(directory->c_str(), 0755) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("creating ", *directory, ": ", strerror(errno)));
    }
    all.push_back(*directory);
    const bool unified = parent == unified_;
    const std::string tasks = *directory + "/tasks";
    const std::string list =
        Exists(tasks) ? tasks : *directory + "/cgroup.procs";
    group->membership_.push_back(
        {UniqueFd(open(list.c_str(), O_WRONLY | O_CLOEXEC)), unified});
    if (!group->membership_.back().file.valid()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("opening ", list, ": ", strerror(errno)));
    }
    return absl::OkStatus();
  };
  for (const auto& [parent, directory] :
       {std::pair(&memory_, &group->memory_), std::pair(&pids_, &group->pids_),
        std::pair(&cpu_, &group->cpu_),
        std::pair(&unified_, &group->unified_)}) {
    if (parent == &cpu_ && !has_weight()) continue;
    if (absl::Status made = make(*parent, directory); !made.ok()) return made;
  }
  bool limited = true;
  if (has_memory() && limits.memory_bytes > 0) {
    const std::string bytes = absl::StrCat(limits.memory_bytes);
    if (memory_v2_) {
      limited &= WriteText(group->memory_ + "/memory.max", bytes);
      WriteText(group->memory_ + "/memory.swap.max", "0");
      WriteText(group->memory_ + "/memory.oom.group", "1");
    } else {
      limited &= WriteText(group->memory_ + "/memory.limit_in_bytes", bytes);
      WriteText(group->memory_ + "/memory.memsw.limit_in_bytes", bytes);
    }
  }
  if (has_pids() && limits.max_tasks > 0) {
    limited &=
        WriteText(group->pids_ + "/pids.max", absl::StrCat(limits.max_tasks));
  }
  if (has_weight()) limited &= SetWeight(group->cpu_, limits.cpu_weight);
  if (!limited) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "setting the limits of group ", name, ": ", strerror(errno)));
  }
  return group;
}

Cgroup::~Cgroup() {
  for (const std::string& directory : directories_) rmdir(directory.c_str());
}

pid_t Cgroup::ForkInside() const {
  if (unified_.empty()) return -1;
  const UniqueFd directory(
      open(unified_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return -1;
  clone_args arguments = {};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<uint64_t>(directory.get());
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

void Cgroup::Kill() {
  if (!unified_.empty() && WriteText(unified_ + "/cgroup.kill", "1")) return;
  // No fork succeeds any more, so killing what is listed converges.
  if (!pids_.empty()) WriteText(pids_ + "/pids.max", "0");
  for (pid_t pid : Processes()) kill(pid, SIGKILL);
}

std::vector<pid_t> Cgroup::Processes() const {
  std::vector<pid_t> processes;
  for (const std::string& directory : directories_) {
    for (const pid_t pid : MembersOf(directory)) {
      // 0 stands for a process outside this PID namespace.
      if (pid > 0 && std::count(processes.begin(), processes.end(), pid) == 0) {
        processes.push_back(pid);
      }
    }
  }
  return processes;
}

bool Cgroup::Empty() const { return Processes().empty(); }

bool OwnMemoryLimitKilled(const std::string& directory, bool unified) {
  if (unified) {
    const std::string events = directory + "/memory.events";
    return KeyedValue(events, "oom_kill") > 0 && KeyedValue(events, "oom") > 0;
  }
  // Version 1 does not tell whose limit it was, and newer kernels no longer
  // count memory.failcnt. Only small allocations end in a kill.
  constexpr int64_t kNear = 1 << 20;
  const auto reached = [&](const std::string& kind) {
    const std::string prefix = absl::StrCat(directory, "/memory.", kind);
    int64_t peak = 0, limit = 0;
    return absl::SimpleAtoi(FirstLine(prefix + "max_usage_in_bytes"), &peak) &&
           absl::SimpleAtoi(FirstLine(prefix + "limit_in_bytes"), &limit) &&
           peak > limit - kNear;
  };
  return KeyedValue(directory + "/memory.oom_control", "oom_kill") > 0 &&
         (reached("") || reached("memsw."));
}

bool Cgroup::MemoryLimitHit() const {
  return !memory_.empty() && OwnMemoryLimitKilled(memory_, memory_v2_);
}

bool Cgroup::TaskLimitHit() const {
  return !pids_.empty() && KeyedValue(pids_ + "/pids.events", "max") > 0;
}

int64_t Cgroup::PeakMemoryBytes() const {
  int64_t bytes = 0;
  if (memory_.empty() ||
      !absl::SimpleAtoi(
          FirstLine(memory_ + (memory_v2_ ? "/memory.peak"
                                          : "/memory.max_usage_in_bytes")),
          &bytes)) {
    return 0;
  }
  return bytes;
}

}  // namespace regatta

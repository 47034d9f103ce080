// Control groups around workers: a memory limit, a task limit, a share of the
// processors and a kill that no fork can outrun. Works with version 2, version
// 1 and the mixture of both; which parts are there is probed, by doing it once.
//
// Not thread-safe; lives in the spawner, which has one thread.
#ifndef REGATTA_DEVICE_AGENT_SANDBOX_CGROUP_H_
#define REGATTA_DEVICE_AGENT_SANDBOX_CGROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

struct CgroupLimits {
  int64_t memory_bytes = 0;  // 0: none
  int max_tasks = 0;         // 0: none
  int cpu_weight = 100;      // 1 to 10000, as version 2 has it
};

// Whether the kernel killed something in the group `directory`, of the memory
// hierarchy, for exceeding the group's own limit: not that of a group around
// it, nor for want of memory on the machine.
bool OwnMemoryLimitKilled(const std::string& directory, bool unified);

// One worker's groups, one directory per hierarchy. Removed when destroyed,
// which succeeds only once they are empty.
class Cgroup {
 public:
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;

  // To come inside: start by ForkInside, or write "0" to the file, in a process
  // of one thread. Both avoid waiting for all forks of the machine, 10 to 20 ms
  // a time, where the kernel can: CLONE_INTO_CGROUP from Linux 5.7 on for
  // version 2, "tasks" in place of "cgroup.procs" from 6.0 on for version 1.
  struct Membership {
    UniqueFd file;
    bool unified = false;  // of version 2: ForkInside already did it
  };
  const std::vector<Membership>& membership() const { return membership_; }
  // As fork(), with the child inside the group of version 2. -1 where there is
  // none or the kernel cannot.
  pid_t ForkInside() const;
  // SIGKILL for everything inside; nothing new starts. To be repeated until
  // Empty() where there is no cgroup.kill.
  void Kill();
  bool Empty() const;
  std::vector<pid_t> Processes() const;
  // OwnMemoryLimitKilled of this group.
  bool MemoryLimitHit() const;
  // A fork was refused for exceeding the task limit.
  bool TaskLimitHit() const;
  int64_t PeakMemoryBytes() const;  // 0: unknown

 private:
  friend class CgroupTree;
  Cgroup() = default;
  std::string memory_, pids_, cpu_, unified_;  // directories; "" not used
  bool memory_v2_ = false;
  std::vector<std::string> directories_;  // the distinct ones of the above
  std::vector<Membership> membership_;
};

// A group of the agent's own that processes of the machine are put into, and
// back to where they were when it is destroyed.
class AgentGroup {
 public:
  // Null where the system refuses any of it; then nothing has changed.
  // `directory`: of the new group; `home`: of the one that they are in.
  static std::unique_ptr<AgentGroup> Enter(std::string directory,
                                           std::string home,
                                           const std::vector<pid_t>& pids);
  // Where they go back to a group around this one, no other may be limited
  // there any more.
  ~AgentGroup();
  AgentGroup(const AgentGroup&) = delete;
  // False where it has no weights.
  bool SetWeight(int weight);

 private:
  AgentGroup(std::string directory, std::string home)
      : directory_(std::move(directory)), home_(std::move(home)) {}
  const std::string directory_, home_;
};

// Where this process may create groups.
class CgroupTree {
 public:
  // Tries each place, innermost first; an empty tree where none works. In
  // version 2 a group with processes cannot limit others: where nobody but
  // `agent` and this process, the spawner, is in theirs, a service's for one,
  // both move into a group within, so that the workers are in the service's,
  // too. Removes empty groups that a killed spawner left behind.
  static CgroupTree Probe(pid_t agent);

  bool has_memory() const { return !memory_.empty(); }
  bool has_pids() const { return !pids_.empty(); }
  bool has_kill() const { return has_kill_; }
  // Groups have weights, and the agent has its own (WeighAgent).
  bool has_weight() const { return has_weight_; }
  bool empty() const {
    return !has_memory() && !has_pids() && !has_kill() && !has_weight();
  }
  // Puts `agent` and this process into a group of this weight beside those of
  // the workers, where that can be done.
  void WeighAgent(pid_t agent, int weight);
  // "cgroup_memory", "cgroup_pids", "cgroup_kill", "cpu_weight".
  std::vector<std::string> Features() const;

  // REQUIRES: !empty(). ResourceExhausted names the directory.
  absl::StatusOr<std::unique_ptr<Cgroup>> Create(const CgroupLimits& limits);

 private:
  std::string memory_, pids_, cpu_, unified_;  // parent directories
  std::string cpu_home_;  // where this process is in the hierarchy of cpu_
  std::unique_ptr<AgentGroup> inner_;    // where the own group had to be left
  std::unique_ptr<AgentGroup> weighed_;  // in cpu_, where inner_ is not there
  bool memory_v2_ = false, has_kill_ = false, has_weight_ = false;
  int next_ = 1;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SANDBOX_CGROUP_H_

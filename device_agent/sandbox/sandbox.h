// What keeps a worker from harming anything but itself, as a set of features
// that are probed once, by doing them, and then always applied.
//
//   no_new_privs    no program gains privileges by being executed
//   rlimits         core dumps, file size, open files, threads and, without
//                   cgroup_memory, address space
//   process_group   a session of its own; killed as one
//   subreaper       orphans come back to the spawner, which kills them
//   watch           without cgroups: memory and tasks of the tree are summed up
//                   every 20 ms and the tree killed when over its limit
//   uid             (root only) users 65533 for builds, 65534 for candidates
//   userns          (others only) namespaces through a user namespace
//   netns ipcns     no network and no shared memory with anything outside
//   mountns         a read-only view of the file system; scratch folders are
//                   memory of limited size
//   cgroup_memory cgroup_pids cgroup_kill
//   cpu_weight      control groups that share out processors: the agent and the
//                   spawner weigh 10000, a candidate 400, a build 100, so that
//                   heartbeats go on whatever uses all cores
//   nice            without cpu_weight: builds are niced by 10; the agent nices
//                   itself by -5 where it may
//   seccomp         see seccomp_filter.h
//   landlock        files by an allow-list, see sandbox.cc: folders of the
//                   system, those of $LD_LIBRARY_PATH and, for builds,
//                   $CUDA_PATH, which workers get too
//   tight           candidates run without files, processes and most system
//                   calls (TightenForCandidate); not where a device's driver
//                   runs them and needs these
//
// Not thread-safe; lives in the spawner. The second, tighter step of a run
// worker is TightenForCandidate.
#ifndef REGATTA_DEVICE_AGENT_SANDBOX_SANDBOX_H_
#define REGATTA_DEVICE_AGENT_SANDBOX_SANDBOX_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/sandbox/cgroup.h"
#include "device_agent/sandbox/scratch_folder.h"

namespace regatta {

struct WorkerLimits {
  int64_t memory_bytes = 0;  // 0: none
  int max_tasks = 0;         // 0: none
  // Its address space says nothing of its memory: a driver reserves far more
  // than the machine has.
  bool reserves_addresses = false;
};

// One worker about to be executed.
struct ChildSetup {
  std::string role;  // "build" or "run"
  WorkerLimits limits;
  const Cgroup* cgroup = nullptr;          // null where there are no cgroups
  bool forked_inside = false;              // by Cgroup::ForkInside
  int program = -1;                        // open file of the program
  std::vector<int> program_files;          // open files of further programs
  std::vector<std::string> programs;       // further folders that it reads
  std::vector<std::string> writable;       // files that it writes
  const ScratchFolder* scratch = nullptr;  // null: none
  pid_t parent = 0;                        // the spawner
};

class Sandbox {
 public:
  // Probes, and removes what killed spawners left. `without`: features not to
  // use even where they are there, so that what poorer machines do can be
  // tested.
  static Sandbox Probe(const std::set<std::string>& without);

  const std::set<std::string>& features() const { return features_; }
  bool Has(const std::string& feature) const {
    return features_.count(feature) > 0;
  }

  // Puts the calling process, the spawner, into the namespaces that all workers
  // share. Once, before the first worker.
  absl::Status EnterSharedNamespaces() const;

  CgroupTree& cgroups() { return cgroups_; }

  // A folder that workers of `role` may write to, for at most `bytes` where
  // mountns is in force.
  absl::StatusOr<std::unique_ptr<ScratchFolder>> MakeScratch(
      const std::string& role, int64_t bytes) const;

  // In the forked child, in this order: join the groups, limits, namespaces,
  // user, no_new_privs, files, system calls. An error means that the child must
  // not go on. FailedPrecondition for a candidate that would run as root.
  absl::Status ApplyInChild(const ChildSetup& setup) const;

  // The environment of a worker: "NAME=value".
  std::vector<std::string> Environment() const;

 private:
  absl::Status LimitResources(const WorkerLimits& limits) const;
  // Absent: they stay the spawner's.
  std::optional<uid_t> UserOf(const std::string& role) const;
  absl::Status ChangeUser(const std::string& role) const;
  absl::Status RestrictPaths(const ChildSetup& setup) const;

  std::set<std::string> features_;
  bool emulated_ = false;  // an emulator runs the spawner
  CgroupTree cgroups_;
};

// Of a worker's group, where there is cpu_weight.
int CpuWeightOf(const std::string& role);

// For a run worker that has loaded its module and is about to call it: applies
// what the spawner has in force (told through the environment) in its tightest
// form: no file can be opened, no process started. An error means that the
// module must not be called.
absl::Status TightenForCandidate();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SANDBOX_SANDBOX_H_

// What runs below a process, read from /proc.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_PROCESS_TREE_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

namespace regatta {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';  // 'Z': dead, not yet waited for
  int threads = 0;
  int64_t resident_bytes = 0;
};

// One look at all processes. Not atomic: forks during the look may be missed.
class ProcessTree {
 public:
  static ProcessTree Read();
  explicit ProcessTree(std::vector<ProcessInfo> processes);

  // Everything below `pid`, without it and without the dead.
  std::vector<ProcessInfo> Descendants(pid_t pid) const;
  // The live process itself; null when there is none.
  const ProcessInfo* Find(pid_t pid) const;

 private:
  std::map<pid_t, ProcessInfo> processes_;
  std::multimap<pid_t, pid_t> children_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_PROCESS_TREE_H_

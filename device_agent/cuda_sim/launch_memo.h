// Launches that need not be simulated again, because they would change nothing.
//
// A launch is a function of its code, its arguments and the bytes of the
// buffers that it touches. Once it was simulated and left all those bytes as
// they were, the same launch on the same bytes does the same: nothing, in the
// same time. Timed calls are all like that, for a kernel that computes its
// outputs from its inputs leaves them as its last call did. A call on poisoned
// outputs is always simulated.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_CUDA_SIM_LAUNCH_MEMO_H_
#define REGATTA_DEVICE_AGENT_CUDA_SIM_LAUNCH_MEMO_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ptxsim/device_memory.h"
#include "compiler/ptxsim/launch.h"

namespace regatta::cuda_sim {

class LaunchMemo {
 public:
  // REQUIRES: `memory` outlives it.
  explicit LaunchMemo(const ptxsim::DeviceMemory* memory) : memory_(*memory) {}

  // The host wrote to, filled or freed the buffer at `address`.
  void NoteWrite(uint64_t address);

  // How long the launch takes, in picoseconds, if it would change nothing.
  // `key` names code, geometry and arguments.
  std::optional<int64_t> Find(const std::string& key) const;

  // Around a launch that is simulated. `arguments`: the launch's, addresses
  // among them.
  void Before(const std::string& key,
              const std::vector<ptxsim::Argument>& arguments);
  void After(const std::string& key, const ptxsim::LaunchReport& report,
             int64_t picoseconds);

  // Forgets all launches.
  void Clear();

 private:
  // Of a buffer's bytes: changes whenever they do.
  uint64_t Version(uint64_t address) const;

  struct Known {
    int64_t picoseconds = 0;
    std::map<uint64_t, uint64_t> versions;  // of the buffers it touches
  };
  const ptxsim::DeviceMemory& memory_;
  std::map<uint64_t, uint64_t> writes_;  // by buffer's address
  uint64_t last_write_ = 0;
  std::set<std::string> seen_;              // simulated at least once
  std::map<uint64_t, std::string> before_;  // bytes of buffers of a launch
  std::map<std::string, Known> known_;
};

}  // namespace regatta::cuda_sim

#endif  // REGATTA_DEVICE_AGENT_CUDA_SIM_LAUNCH_MEMO_H_

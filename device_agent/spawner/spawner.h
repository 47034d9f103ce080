// The only process of a board that forks. Starts workers for the agent, holds
// them to their limits, and kills each with everything that it started.
//
// Speaks worker.proto with the agent over one socket. When that socket closes,
// or on SIGTERM, it kills all workers, closes the socket and ends once they are
// gone: nothing survives an agent but what outlives its killing, and the
// spawner that goes on killing it and holds the locks of its cores. One thread
// for ever, because workers die with the thread that started them.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_SPAWNER_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_SPAWNER_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/spawner/frame_channel.h"
#include "device_agent/spawner/worker.h"

namespace regatta {

class Spawner {
 public:
  // REQUIRES: `clock` outlives it. The sandbox's shared namespaces are entered.
  Spawner(Sandbox sandbox, FrameChannel agent, const Clock& clock);

  // Serves until the agent goes or SIGTERM, then until no worker is left.
  // Internal when the event loop itself cannot work.
  absl::Status Run();

 private:
  struct Served {
    std::unique_ptr<Worker> worker;
    int64_t request_id;  // of the Spawn
  };

  // False when the agent is gone.
  bool HandleRequest();
  void HandleSpawn(int64_t request_id, const v1::Spawn& spawn,
                   std::vector<UniqueFd> descriptors);
  void ReapEnded();
  // Limits, kills, reports.
  void Advance();
  // Those of `below` that no worker is known to own.
  std::vector<ProcessInfo> Orphans(const ProcessTree& tree,
                                   const std::vector<ProcessInfo>& below) const;
  // Milliseconds until Advance has something to do; -1: only on an event.
  int WaitMs() const;
  void Report(int64_t request_id, v1::SpawnEvent event);
  void KillAll();

  Sandbox sandbox_;
  FrameChannel agent_;
  const Clock& clock_;
  std::map<int64_t, Served> workers_;
  // Reported with leftovers: what they hold is theirs until they are gone, and
  // what they left is nobody else's.
  std::vector<std::unique_ptr<Worker>> outliving_;
  int64_t next_worker_ = 1;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_SPAWNER_H_

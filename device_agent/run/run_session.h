// What a run worker does with one request: load, verify, time, verify again.
//
// One session per process; it ends with the process.
#ifndef REGATTA_DEVICE_AGENT_RUN_RUN_SESSION_H_
#define REGATTA_DEVICE_AGENT_RUN_RUN_SESSION_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "compiler/module/module.h"
#include "device_agent/run/block_timer.h"
#include "device_agent/run/cache_eviction.h"
#include "device_agent/run/loaded_module.h"
#include "device_agent/spawner/frame_channel.h"
#include "device_agent/verify/reference_file.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

class RunSession {
 public:
  // REQUIRES: both outlive it.
  RunSession(FrameChannel& agent, const Clock& clock)
      : agent_(agent), clock_(clock) {}

  // Receives the request and carries it out. What the candidate does wrong is
  // answered as a RunFailure and OK is returned; an error is this machine's or
  // the agent's (a torn frame, no memory, a sandbox that does not hold).
  absl::Status Run();

 private:
  absl::Status Prepare(std::vector<UniqueFd> descriptors);
  absl::Status MakeReference(int file);
  absl::Status TimeAlone();
  absl::Status TimeInterleaved();

  int Call();
  // Poisons, calls once and compares everything. "" or what is wrong; adds to
  // `max_error_`.
  std::string VerifyOnce(uint8_t poison, int* error);
  // Verifies and answers the failure, if any; false then.
  absl::StatusOr<bool> VerifyOrFail(uint8_t poison, std::string_view when);
  absl::Status Fail(v1::Outcome outcome, const std::string& detail);
  absl::Status FailCall(int error);
  absl::Status Send(const v1::RunResponse& response) {
    return agent_.Send(response);
  }

  FrameChannel& agent_;
  const Clock& clock_;
  v1::RunRequest request_;
  Module module_;
  LoadedModule loaded_;
  ReferenceTensors reference_;
  std::vector<GuardedMemory> outputs_;
  std::vector<GuardedMemory> workspace_;  // one or none
  std::vector<void*> pointers_;           // inputs, then outputs
  std::unique_ptr<CacheEviction> eviction_;
  std::unique_ptr<BlockTimer> timer_;
  long calls_ = 0;
  double max_error_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_RUN_SESSION_H_

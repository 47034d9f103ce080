// What a run worker does with one request: load, verify, time, verify again;
// the same for every kind of device. Or list the devices that there are.
//
// One session per request, one after the other.
#ifndef REGATTA_DEVICE_AGENT_RUN_RUN_SESSION_H_
#define REGATTA_DEVICE_AGENT_RUN_RUN_SESSION_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "compiler/module/module.h"
#include "device_agent/run/block_timer.h"
#include "device_agent/run/module_runtime.h"
#include "device_agent/spawner/frame_channel.h"
#include "device_agent/verify/reference_file.h"
#include "proto/utf8_texts.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

class RunSession {
 public:
  // `call_clock` times the module's calls, `clock` everything else. REQUIRES:
  // all outlive it.
  RunSession(FrameChannel& agent, const Clock& clock, const Clock& call_clock)
      : agent_(agent), clock_(clock), call_clock_(call_clock) {}
  ~RunSession();

  // Receives the request and carries it out. What the candidate does wrong is
  // answered as a RunFailure and OK is returned; an error is this machine's or
  // the agent's (a torn frame, no memory, a sandbox that does not hold).
  // Also OK when the agent wants nothing more.
  absl::Status Run();
  // After Run: the process may take another request. Only when it was asked to
  // and nothing went wrong: what failed may have left anything behind.
  bool reusable() const { return reusable_; }
  // A candidate was called, and may have done anything to this process.
  bool called() const { return tightened_; }

 private:
  absl::Status Carry(std::vector<UniqueFd> descriptors);

  absl::Status Prepare(std::vector<UniqueFd> descriptors);
  // False when the device failed, which is answered then.
  absl::StatusOr<bool> PrepareRuntime();
  absl::Status MakeReference();
  absl::Status TimeAlone();
  absl::Status TimeInterleaved();

  // Whether all went well; the first failure is kept.
  bool Good(MaybeFailure failure);
  // Poisons, calls once and compares everything. False when something is wrong:
  // failure_ says what. Adds to `max_error_`.
  bool VerifyOnce(uint8_t poison, std::string_view when);
  // Verifies and answers the failure, if any; false then.
  absl::StatusOr<bool> VerifyOrFail(uint8_t poison, std::string_view when);
  // Answers failure_.
  absl::Status AnswerFailure();
  absl::Status Send(v1::RunResponse response) {
    MakeTextsUtf8(response);
    return agent_.Send(response);
  }

  FrameChannel& agent_;
  const Clock& clock_;
  const Clock& call_clock_;
  v1::RunRequest request_;
  Module module_;
  UniqueFd reference_file_;
  ReferenceTensors reference_;
  std::unique_ptr<ModuleRuntime> runtime_;
  std::unique_ptr<BlockTimer> timer_;
  MaybeFailure failure_;
  std::vector<UniqueFd> locks_;  // of processors, until this ends
  bool tightened_ = false;
  bool reusable_ = false;
  double max_error_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_RUN_SESSION_H_

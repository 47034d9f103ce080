// What an agent's flags come to on this machine.
#ifndef REGATTA_DEVICE_AGENT_AGENT_FLAGS_H_
#define REGATTA_DEVICE_AGENT_AGENT_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/agent_security.h"
#include "device_agent/devices/provider_list.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/measure/trial_runner.h"

namespace regatta {

// Fills in the defaults that depend on the machine, and checks what stands
// alone. InvalidArgument names the flag.
absl::Status CompleteFlags(AgentFlags* flags);

struct AgentPlan {
  AgentRoles roles;
  Providers providers;
  std::vector<int> cpus;
  RunnerOptions runner;
  // Keys of the builders whose modules this board runs; {} unless measure_only.
  std::vector<std::string> trusted;
  bool measure_only = false;
  std::string emulator;  // FindEmulator()
};

// What the flags ask of this machine. Starts and changes nothing.
// InvalidArgument names the flag; FailedPrecondition: what is missing here.
// REQUIRES: the flags are complete.
absl::StatusOr<AgentPlan> PlanAgent(const AgentFlags& flags);

// Whether an agent of these flags would start here, as far as that shows
// without a worker, a tracker and a token's use. Changes nothing. Errors as
// ServeAgent's.
absl::Status CheckAgentOptions(AgentFlags flags,
                               const AgentSecurityFlags& security);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_AGENT_FLAGS_H_

// What an agent's flags come to on this machine.
#ifndef REGATTA_DEVICE_AGENT_AGENT_FLAGS_H_
#define REGATTA_DEVICE_AGENT_AGENT_FLAGS_H_

#include "absl/status/status.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/measure/trial_runner.h"

namespace regatta {

// Fills in the defaults that depend on the machine, makes the state folder, and
// checks. InvalidArgument names the flag.
absl::Status CompleteFlags(AgentFlags* flags);

// REQUIRES: they are complete.
RunnerOptions RunnerOptionsOf(const AgentFlags& flags);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_AGENT_FLAGS_H_

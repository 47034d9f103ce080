// The running agent: puts its parts together, serves until it is told to stop.
#ifndef REGATTA_DEVICE_AGENT_AGENT_PROCESS_H_
#define REGATTA_DEVICE_AGENT_AGENT_PROCESS_H_

#include "absl/status/status.h"
#include "device_agent/agent_security.h"
#include "device_agent/loop/agent_setup.h"

namespace regatta {

// Serves until SIGTERM or Ctrl-C. REQUIRES: the only thread of the process.
// InvalidArgument for wrong flags; PermissionDenied for a token that does not
// let it in.
absl::Status ServeAgent(AgentFlags flags, const AgentSecurityFlags& security);

// Prints the public key that this agent's boards name, made when there is none.
absl::Status PrintBuilderKey(AgentFlags flags);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_AGENT_PROCESS_H_

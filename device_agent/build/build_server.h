// A build worker's loop: requests in, modules out, one at a time, until the
// agent closes the channel.
#ifndef REGATTA_DEVICE_AGENT_BUILD_BUILD_SERVER_H_
#define REGATTA_DEVICE_AGENT_BUILD_BUILD_SERVER_H_

#include "absl/status/status.h"
#include "base/clock.h"
#include "device_agent/build/module_source.h"
#include "device_agent/spawner/frame_channel.h"

namespace regatta {

// OK once the agent has closed the channel.
absl::Status ServeBuilds(FrameChannel& agent, ModuleSource& source,
                         const Clock& clock);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_BUILD_BUILD_SERVER_H_

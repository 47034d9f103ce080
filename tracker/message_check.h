// Checks of what comes in from agents and servers, before anything changes. An
// error's message names the field and what is wrong with it.
#ifndef REGATTA_TRACKER_MESSAGE_CHECK_H_
#define REGATTA_TRACKER_MESSAGE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

// FailedPrecondition for a protocol version that this tracker does not speak;
// otherwise InvalidArgument.
absl::Status CheckAgentMessage(const v1::AgentMessage& message,
                               int64_t max_bytes);

// InvalidArgument. A unit of work must fit into one message to an agent.
absl::Status CheckDispatchRequest(const v1::DispatchRequest& request,
                                  int64_t max_work_bytes);

}  // namespace regatta

#endif  // REGATTA_TRACKER_MESSAGE_CHECK_H_

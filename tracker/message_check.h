// Checks of what comes in from agents and servers, before anything changes. An
// error's message names the field and what is wrong with it.
#ifndef REGATTA_TRACKER_MESSAGE_CHECK_H_
#define REGATTA_TRACKER_MESSAGE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

// A larger unit of work is refused on its own. Agents take an Assignment of at
// most 768 KiB; 4 KiB are left for the fields that it adds to a Work.
inline constexpr int64_t kMaxWorkBytes = (768 - 4) << 10;

// Whether a tracker of version `current` speaks `version`: its own and the one
// before it. Versions count from 1.
bool SpeaksProtocol(int version, int current);

// FailedPrecondition for a protocol version that this tracker does not speak;
// otherwise InvalidArgument.
absl::Status CheckAgentMessage(const v1::AgentMessage& message,
                               int64_t max_bytes);

// InvalidArgument. Says nothing about the size of a unit of work.
absl::Status CheckDispatchRequest(const v1::DispatchRequest& request);

}  // namespace regatta

#endif  // REGATTA_TRACKER_MESSAGE_CHECK_H_

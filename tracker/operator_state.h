// What people say about devices: the operator axis, and the two words that they
// have in trust (approve; quarantine and release). Pure rules over a
// DeviceStanding; device_control.proto draws them.
//
//   NORMAL ─► DRAINING (60 s; 10 s for a reservation) ─► MAINTENANCE, RETIRED
//                                                        or RESERVED (<= 8 h)
//
// No state on the way lasts for ever: DRAINING ends when the device holds
// nothing more or at its deadline, RESERVED at its end, MAINTENANCE at its end
// or by a person.
#ifndef REGATTA_TRACKER_OPERATOR_STATE_H_
#define REGATTA_TRACKER_OPERATOR_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "regatta/v1/device_control.pb.h"

namespace regatta {

inline constexpr absl::Duration kDrainLimit = absl::Seconds(60);
inline constexpr absl::Duration kPreemptLimit = absl::Seconds(10);
inline constexpr absl::Duration kReservation = absl::Hours(2);
inline constexpr absl::Duration kLongestReservation = absl::Hours(8);
inline constexpr absl::Duration kLongestMaintenance = absl::Hours(24 * 365);

inline constexpr size_t kMaxReasonBytes = 500;

// The name of the tracker itself, where `by` is asked for.
inline constexpr char kByTracker[] = "tracker";

// InvalidArgument: what is missing or out of range, whatever the devices.
absl::Status CheckControl(const v1::ControlDevicesRequest& request);

// Whether a command that names no device, but a class or labels, leaves this
// one alone: a retired one (unless it is to be retired, or its trust is meant),
// and, where it would resume, one that somebody else has reserved.
bool PassesOver(const v1::ControlDevicesRequest& request,
                const v1::DeviceStanding& standing);

// Carries the command out on one device; false: it was so already.
// FailedPrecondition, without a change: not now; names the device, says what
// stands in the way and what to do. REQUIRES: CheckControl(request).ok().
absl::StatusOr<bool> ApplyCommand(const v1::ControlDevicesRequest& request,
                                  int64_t now_unix_ms,
                                  v1::DeviceStanding* standing);

// DRAINING is over: the device holds nothing any more.
void EndDraining(int64_t now_unix_ms, v1::DeviceStanding* standing);
// RESERVED or MAINTENANCE has come to its end.
void EndHold(int64_t now_unix_ms, v1::DeviceStanding* standing);

// Of a device that shows up for the first time.
v1::DeviceStanding NewStanding(const std::string& device_id,
                               const std::string& agent_id,
                               int64_t now_unix_ms);

// At most kMaxReasonBytes of what an agent says, on one line; the rest is cut
// off.
std::string Brief(std::string_view text);

void SetTrust(v1::Trust trust, const std::string& reason, const std::string& by,
              int64_t now_unix_ms, v1::DeviceStanding* standing);

// What keeps the device from the work of jobs, for people, after its name:
// "waiting for approval", "in maintenance by ann: fan swap". "": nothing, or
// only a canary.
std::string ObstacleOf(const v1::DeviceStanding& standing);
}  // namespace regatta

#endif  // REGATTA_TRACKER_OPERATOR_STATE_H_

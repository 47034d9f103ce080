#include "tracker/operator_state.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/one_line.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/outcome_names.h"

namespace regatta {
namespace {

void SetOperator(v1::OperatorState state, const std::string& reason,
                 const std::string& by, int64_t now_ms, int64_t until_ms,
                 v1::DeviceStanding* standing) {
  standing->set_operator_state(state);
  v1::Standing& s = *standing->mutable_operator_standing();
  s.set_reason(reason);
  s.set_by(by);
  s.set_since_unix_ms(now_ms);
  s.set_until_unix_ms(until_ms);
  standing->clear_next();
  standing->clear_next_until_unix_ms();
}

void StartDraining(v1::OperatorState next, absl::Duration limit,
                   int64_t next_until_ms,
                   const v1::ControlDevicesRequest& request, int64_t now_ms,
                   v1::DeviceStanding* standing) {
  SetOperator(v1::OPERATOR_STATE_DRAINING, request.reason(), request.by(),
              now_ms, now_ms + absl::ToInt64Milliseconds(limit), standing);
  standing->set_next(next);
  standing->set_next_until_unix_ms(next_until_ms);
}

// Back to work: whoever had it may have changed it, so a canary is owed.
void BackToNormal(const std::string& reason, const std::string& by,
                  int64_t now_ms, v1::DeviceStanding* standing) {
  const bool was_away =
      standing->operator_state() != v1::OPERATOR_STATE_DRAINING;
  const std::string from = OperatorStateName(standing->operator_state());
  SetOperator(v1::OPERATOR_STATE_NORMAL, reason, by, now_ms, 0, standing);
  if (was_away && standing->trust() == v1::TRUST_HEALTHY) {
    SetTrust(v1::TRUST_UNKNOWN, absl::StrCat("back from ", from), kByTracker,
             now_ms, standing);
    standing->set_canaries_owed(1);
  }
}

std::string Until(int64_t unix_ms) {
  if (unix_ms == 0) return "";
  return absl::StrCat(" until ", absl::FormatTime("%Y-%m-%d %H:%M UTC",
                                                  absl::FromUnixMillis(unix_ms),
                                                  absl::UTCTimeZone()));
}

// What the device is, or is about to be.
v1::OperatorState Target(const v1::DeviceStanding& standing) {
  return standing.operator_state() == v1::OPERATOR_STATE_DRAINING
             ? standing.next()
             : standing.operator_state();
}

int64_t TargetUntil(const v1::DeviceStanding& standing) {
  return standing.operator_state() == v1::OPERATOR_STATE_DRAINING
             ? standing.next_until_unix_ms()
             : standing.operator_standing().until_unix_ms();
}

absl::Status Refuse(const v1::DeviceStanding& standing,
                    const std::string& what_to_do) {
  return absl::FailedPreconditionError(absl::StrCat(
      "device ", standing.device_id(), " is ",
      OperatorStateName(Target(standing)), " by ",
      standing.operator_standing().by(), Until(TargetUntil(standing)), ": ",
      standing.operator_standing().reason(), "; ", what_to_do));
}

bool NamesDevices(const v1::ControlDevicesRequest& request) {
  return !request.devices().device_ids().empty();
}

bool ReservedByAnother(const v1::ControlDevicesRequest& request,
                       const v1::DeviceStanding& standing) {
  return Target(standing) == v1::OPERATOR_STATE_RESERVED &&
         standing.operator_standing().by() != request.by();
}

absl::StatusOr<bool> Reserve(const v1::ControlDevicesRequest& request,
                             int64_t now_ms, v1::DeviceStanding* standing) {
  const int64_t for_ms = request.for_ms() > 0
                             ? request.for_ms()
                             : absl::ToInt64Milliseconds(kReservation);
  if (standing->trust() == v1::TRUST_PENDING) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device ", standing->device_id(), " waits for approval; approve it"));
  }
  switch (Target(*standing)) {
    case v1::OPERATOR_STATE_RESERVED: {
      if (standing->operator_standing().by() != request.by()) {
        return Refuse(*standing, "wait, or release it with a reason");
      }
      v1::Standing& held = *standing->mutable_operator_standing();
      held.set_reason(request.reason());
      if (standing->operator_state() == v1::OPERATOR_STATE_DRAINING) {
        standing->set_next_until_unix_ms(now_ms + for_ms);
      } else {
        held.set_until_unix_ms(now_ms + for_ms);
      }
      return true;
    }
    case v1::OPERATOR_STATE_NORMAL:
      StartDraining(v1::OPERATOR_STATE_RESERVED, kPreemptLimit, now_ms + for_ms,
                    request, now_ms, standing);
      return true;
    default:
      return Refuse(*standing, "resume it first");
  }
}

int64_t EndOf(const v1::ControlDevicesRequest& request, int64_t now_ms) {
  return request.for_ms() > 0 ? now_ms + request.for_ms() : 0;
}

// Asked again for what it is or is about to be: who has it says how long; of
// two people the one counts whose hold ends later (0: never).
bool Prolong(const v1::ControlDevicesRequest& request, int64_t until_ms,
             v1::DeviceStanding* standing) {
  const int64_t now_until = TargetUntil(*standing);
  v1::Standing& held = *standing->mutable_operator_standing();
  const bool later = now_until != 0 && (until_ms == 0 || until_ms > now_until);
  const bool own = held.by() == request.by() && until_ms != now_until;
  if (!later && !own) return false;
  held.set_reason(request.reason());
  held.set_by(request.by());
  if (standing->operator_state() == v1::OPERATOR_STATE_DRAINING) {
    standing->set_next_until_unix_ms(until_ms);
  } else {
    held.set_until_unix_ms(until_ms);
  }
  return true;
}

absl::StatusOr<bool> Drain(const v1::ControlDevicesRequest& request,
                           v1::OperatorState next, int64_t now_ms,
                           v1::DeviceStanding* standing) {
  const v1::OperatorState target = Target(*standing);
  const int64_t until_ms = EndOf(request, now_ms);
  if (target == next) return Prolong(request, until_ms, standing);
  if (target == v1::OPERATOR_STATE_RESERVED) {
    return Refuse(*standing, "release it first");
  }
  if (target == v1::OPERATOR_STATE_RETIRED) {
    return Refuse(*standing, "resume it first");
  }
  if (standing->operator_state() == v1::OPERATOR_STATE_MAINTENANCE) {
    // Holds nothing already.
    SetOperator(next, request.reason(), request.by(), now_ms, until_ms,
                standing);
    return true;
  }
  StartDraining(next, kDrainLimit, until_ms, request, now_ms, standing);
  return true;
}

absl::StatusOr<bool> Maintain(const v1::ControlDevicesRequest& request,
                              int64_t now_ms, v1::DeviceStanding* standing) {
  if (ReservedByAnother(request, *standing)) {
    return Refuse(*standing, "release it first");
  }
  if (Target(*standing) == v1::OPERATOR_STATE_RETIRED) {
    // Off or not, it stays retired.
    if (request.command() == v1::DEVICE_COMMAND_POWER_OFF) return true;
    return Refuse(*standing, "resume it first");
  }
  const int64_t until_ms = EndOf(request, now_ms);
  if (Target(*standing) != v1::OPERATOR_STATE_MAINTENANCE) {
    SetOperator(v1::OPERATOR_STATE_MAINTENANCE, request.reason(), request.by(),
                now_ms, until_ms, standing);
    return true;
  }
  const bool prolonged = Prolong(request, until_ms, standing);
  if (standing->operator_state() == v1::OPERATOR_STATE_DRAINING) {
    // At once, whoever's words stand.
    EndDraining(now_ms, standing);
    return true;
  }
  // Its power goes off, whatever it was before.
  return prolonged || request.command() == v1::DEVICE_COMMAND_POWER_OFF;
}

absl::StatusOr<bool> Quarantine(const v1::ControlDevicesRequest& request,
                                int64_t now_ms, v1::DeviceStanding* standing) {
  if (standing->trust() == v1::TRUST_PENDING) {
    return absl::FailedPreconditionError(
        absl::StrCat("device ", standing->device_id(),
                     " waits for approval and takes no work anyway"));
  }
  if (standing->trust() == v1::TRUST_QUARANTINED) return false;
  SetTrust(v1::TRUST_QUARANTINED, request.reason(), request.by(), now_ms,
           standing);
  standing->set_canaries_owed(0);
  return true;
}

// Another's reservation ends by who names the device and says why, not by a
// word about many or about something else.
absl::Status MayEndReservation(const v1::ControlDevicesRequest& request,
                               const v1::DeviceStanding& standing) {
  if (!ReservedByAnother(request, standing) || !request.reason().empty()) {
    return absl::OkStatus();
  }
  return Refuse(standing, "wait, or end it for them with a reason");
}

absl::StatusOr<bool> Resume(const v1::ControlDevicesRequest& request,
                            int64_t now_ms, v1::DeviceStanding* standing) {
  if (standing->operator_state() == v1::OPERATOR_STATE_NORMAL) return false;
  RETURN_IF_ERROR(MayEndReservation(request, *standing));
  BackToNormal(request.reason(), request.by(), now_ms, standing);
  return true;
}

absl::StatusOr<bool> Release(const v1::ControlDevicesRequest& request,
                             int64_t now_ms, v1::DeviceStanding* standing) {
  const bool reserved =
      Target(*standing) == v1::OPERATOR_STATE_RESERVED && NamesDevices(request);
  if (reserved) RETURN_IF_ERROR(MayEndReservation(request, *standing));
  bool changed = false;
  if (standing->trust() == v1::TRUST_QUARANTINED ||
      standing->trust() == v1::TRUST_BROKEN) {
    SetTrust(v1::TRUST_UNKNOWN,
             absl::StrCat("released", request.reason().empty() ? "" : ": ",
                          request.reason()),
             request.by(), now_ms, standing);
    standing->set_canaries_owed(1);
    changed = true;
  }
  if (reserved) {
    BackToNormal(
        absl::StrCat("reservation released",
                     request.reason().empty() ? "" : ": ", request.reason()),
        request.by(), now_ms, standing);
    changed = true;
  }
  return changed;
}

bool Label(const v1::ControlDevicesRequest& request,
           v1::DeviceStanding* standing) {
  bool changed = false;
  auto& labels = *standing->mutable_labels();
  for (const auto& [name, value] : request.labels()) {
    const auto found = labels.find(name);
    if (value.empty()) {
      changed |= found != labels.end();
      labels.erase(name);
    } else if (found == labels.end() || found->second != value) {
      labels[name] = value;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool PassesOver(const v1::ControlDevicesRequest& request,
                const v1::DeviceStanding& standing) {
  if (NamesDevices(request)) return false;
  switch (request.command()) {
    case v1::DEVICE_COMMAND_RESUME:
      if (ReservedByAnother(request, standing)) return true;
      [[fallthrough]];
    case v1::DEVICE_COMMAND_DRAIN:
    case v1::DEVICE_COMMAND_RESERVE:
    case v1::DEVICE_COMMAND_MAINTENANCE:
    case v1::DEVICE_COMMAND_POWER_OFF:
    case v1::DEVICE_COMMAND_POWER_ON:
    case v1::DEVICE_COMMAND_POWER_CYCLE:
      return Target(standing) == v1::OPERATOR_STATE_RETIRED;
    default:
      return false;
  }
}

absl::StatusOr<bool> ApplyCommand(const v1::ControlDevicesRequest& request,
                                  int64_t now_ms,
                                  v1::DeviceStanding* standing) {
  switch (request.command()) {
    case v1::DEVICE_COMMAND_APPROVE:
      if (standing->trust() != v1::TRUST_PENDING) return false;
      SetTrust(v1::TRUST_UNKNOWN,
               request.reason().empty() ? "approved" : request.reason(),
               request.by(), now_ms, standing);
      standing->set_canaries_owed(1);
      return true;
    case v1::DEVICE_COMMAND_DRAIN:
      return Drain(request, v1::OPERATOR_STATE_MAINTENANCE, now_ms, standing);
    case v1::DEVICE_COMMAND_RETIRE:
      return Drain(request, v1::OPERATOR_STATE_RETIRED, now_ms, standing);
    case v1::DEVICE_COMMAND_RESUME:
      return Resume(request, now_ms, standing);
    case v1::DEVICE_COMMAND_QUARANTINE:
      return Quarantine(request, now_ms, standing);
    case v1::DEVICE_COMMAND_RELEASE:
      return Release(request, now_ms, standing);
    case v1::DEVICE_COMMAND_RESERVE:
      return Reserve(request, now_ms, standing);
    case v1::DEVICE_COMMAND_MAINTENANCE:
    case v1::DEVICE_COMMAND_POWER_OFF:
      return Maintain(request, now_ms, standing);
    case v1::DEVICE_COMMAND_POWER_ON:
    case v1::DEVICE_COMMAND_POWER_CYCLE:
      // Nothing that people decide changes, but for one who has it alone.
      if (ReservedByAnother(request, *standing)) {
        return Refuse(*standing, "release it first");
      }
      return true;
    case v1::DEVICE_COMMAND_LABEL:
      return Label(request, standing);
    default:
      break;
  }
  CHECK(false) << "command " << static_cast<int>(request.command());
}

void EndDraining(int64_t now_ms, v1::DeviceStanding* standing) {
  CHECK(standing->operator_state() == v1::OPERATOR_STATE_DRAINING)
      << standing->device_id();
  const v1::Standing held = standing->operator_standing();
  SetOperator(standing->next(), held.reason(), held.by(), now_ms,
              standing->next_until_unix_ms(), standing);
}

void EndHold(int64_t now_ms, v1::DeviceStanding* standing) {
  const std::string what = OperatorStateName(standing->operator_state());
  BackToNormal(absl::StrCat("the time of ", what, " is over"), kByTracker,
               now_ms, standing);
}

v1::DeviceStanding NewStanding(const std::string& device_id,
                               const std::string& agent_id, int64_t now_ms) {
  v1::DeviceStanding standing;
  standing.set_device_id(device_id);
  standing.set_agent_id(agent_id);
  SetTrust(v1::TRUST_PENDING, "new", kByTracker, now_ms, &standing);
  SetOperator(v1::OPERATOR_STATE_NORMAL, "", kByTracker, now_ms, 0, &standing);
  return standing;
}

std::string Brief(std::string_view text) {
  if (text.size() <= kMaxReasonBytes) return OneLine(text);
  return OneLine(Utf8Beginning(text, kMaxReasonBytes)) + "...";
}

void SetTrust(v1::Trust trust, const std::string& reason, const std::string& by,
              int64_t now_ms, v1::DeviceStanding* standing) {
  standing->set_trust(trust);
  v1::Standing& s = *standing->mutable_trust_standing();
  s.set_reason(Brief(reason));
  s.set_by(by);
  s.set_since_unix_ms(now_ms);
  s.clear_until_unix_ms();
}

std::string ObstacleOf(const v1::DeviceStanding& standing) {
  const v1::Standing& held = standing.operator_standing();
  const std::string by = absl::StrCat(
      " by ", held.by(), Until(TargetUntil(standing)), ": ", held.reason());
  switch (Target(standing)) {
    case v1::OPERATOR_STATE_MAINTENANCE:
      return "in maintenance" + by;
    case v1::OPERATOR_STATE_RETIRED:
      return "retired" + by;
    case v1::OPERATOR_STATE_RESERVED:
      return "reserved" + by;
    default:
      break;
  }
  const v1::Standing& trust = standing.trust_standing();
  switch (standing.trust()) {
    case v1::TRUST_PENDING:
      return "waiting for approval";
    case v1::TRUST_QUARANTINED:
      return absl::StrCat("quarantined by ", trust.by(), ": ", trust.reason());
    case v1::TRUST_BROKEN:
      return absl::StrCat("called broken by ", trust.by(), ": ",
                          trust.reason());
    default:
      return "";
  }
}

}  // namespace regatta

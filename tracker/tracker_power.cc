// TrackerCore: switching boards off and on.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// As history spells them; read back after a restart.
constexpr char kPoweredEvent[] = "powered";
constexpr char kSwitchedOffEvent[] = "switched off";
constexpr char kHookFailedEvent[] = "power hook failed";
constexpr char kResumedEvent[] = "power resumed";
constexpr char kLapsedEvent[] = "power lapsed";

// What of an order is known to have ended it, beside the next one.
bool Ends(PowerVerb verb, const std::string& what) {
  // A hook that fails at switching off is not tried again.
  if (verb == PowerVerb::kOff) {
    return what == kSwitchedOffEvent || what == kHookFailedEvent ||
           what == kLapsedEvent;
  }
  return what == kPoweredEvent;
}

std::optional<PowerVerb> VerbOf(v1::DeviceCommand command) {
  switch (command) {
    case v1::DEVICE_COMMAND_POWER_OFF:
      return PowerVerb::kOff;
    case v1::DEVICE_COMMAND_POWER_ON:
      return PowerVerb::kOn;
    case v1::DEVICE_COMMAND_POWER_CYCLE:
      return PowerVerb::kCycle;
    default:
      return std::nullopt;
  }
}

// Of an event of history.
std::optional<PowerVerb> VerbOf(const std::string& what) {
  for (const v1::DeviceCommand command :
       {v1::DEVICE_COMMAND_POWER_OFF, v1::DEVICE_COMMAND_POWER_ON,
        v1::DEVICE_COMMAND_POWER_CYCLE}) {
    if (what == DeviceCommandName(command)) return VerbOf(command);
  }
  return std::nullopt;
}

}  // namespace

absl::Status TrackerCore::CheckPower(
    v1::DeviceCommand command, const std::vector<std::string>& ids) const {
  const std::optional<PowerVerb> verb = VerbOf(command);
  if (!verb) return absl::OkStatus();
  for (const std::string& id : ids) {
    RETURN_IF_ERROR(power_.Check(id, *verb, clock_.Steady()));
    const auto device = registry_.devices().find(id);
    if (*verb == PowerVerb::kOn && device != registry_.devices().end() &&
        registry_.agents().find(device->second.agent_id)->second.session) {
      return absl::FailedPreconditionError(
          absl::StrCat("device ", id, " is online: it has power"));
    }
  }
  return absl::OkStatus();
}

void TrackerCore::StartPower(v1::DeviceCommand command,
                             const std::string& device_id) {
  const std::optional<PowerVerb> verb = VerbOf(command);
  if (!verb) return;
  power_.Start(device_id, *verb, clock_.Steady());
  const Device* device = registry_.FindDevice(device_id);
  if (device == nullptr) return;
  Agent& agent = *registry_.FindAgent(device->agent_id);
  if (*verb != PowerVerb::kOff) {
    agent.reboot_until = clock_.Steady() + PowerBook::kGiveUp;
  }
  if (*verb != PowerVerb::kOn) {
    // What the board runs ends with its power, and none of it counts.
    for (const std::string& id : agent.device_ids) ClearDevice(id);
  }
  Reindex(agent);
  AdvancePower(clock_.Steady());
}

void TrackerCore::AdvancePower(SteadyTime now) {
  for (PowerSend& send : power_.Due(now)) {
    if (const Device* device = registry_.FindDevice(send.device_id);
        device != nullptr && send.back_by) {
      Agent& agent = *registry_.FindAgent(device->agent_id);
      agent.reboot_until = send.back_by;
      Reindex(agent);
    }
    actions_.push_back(SwitchPower{send.device_id, std::move(send.command)});
  }
  for (const std::string& id : power_.GiveUps(now)) {
    const v1::DeviceStanding* known = standings_.Find(id);
    if (known == nullptr) continue;
    v1::DeviceStanding standing = *known;
    const std::string why = absl::StrCat(
        "its power was switched for ", absl::FormatDuration(PowerBook::kGiveUp),
        ", and it did not boot");
    // Broken may be released, which must not approve it.
    if (standing.trust() != v1::TRUST_PENDING) {
      SetTrust(v1::TRUST_BROKEN, why, kByTracker, WallMs(), &standing);
    }
    standings_.Set(std::move(standing), ClassOf(id), kBrokenEvent, why);
    LOG(kError) << LogEvent("device_broken") << LogDevice(id) << LogReason(why)
                << "device " << id << " is broken: " << why;
    if (const Device* device = registry_.FindDevice(id)) {
      Agent& agent = *registry_.FindAgent(device->agent_id);
      if (!AnySwitched(agent)) agent.reboot_until.reset();
    }
    FollowStanding(id);
  }
}

void TrackerCore::PowerDone(const std::string& device_id,
                            const absl::Status& status) {
  const bool off = power_.Done(device_id, clock_.Steady());
  if (!status.ok()) {
    standings_.Note(device_id, ClassOf(device_id), kHookFailedEvent,
                    std::string(status.message()));
  } else if (off) {
    standings_.Note(device_id, ClassOf(device_id), kSwitchedOffEvent,
                    "its power hook says so");
  }
  AdvancePower(clock_.Steady());
  Settle();
}

bool TrackerCore::IsSwitched(const Device& device) const {
  return registry_.agents()
      .find(device.agent_id)
      ->second.reboot_until.has_value();
}

bool TrackerCore::AnySwitched(const Agent& agent) const {
  return std::any_of(agent.device_ids.begin(), agent.device_ids.end(),
                     [&](const std::string& id) { return power_.Busy(id); });
}

bool TrackerCore::PowerProven(const std::string& device_id) {
  const bool proven = power_.Booted(device_id);
  if (const Device* device = registry_.FindDevice(device_id)) {
    Agent& agent = *registry_.FindAgent(device->agent_id);
    if (!AnySwitched(agent)) agent.reboot_until.reset();
  }
  return proven;
}

void TrackerCore::ProvePower(Agent& agent) {
  bool proven = false;
  for (const std::string& id : agent.device_ids) {
    if (power_.Seen(id)) {
      proven = true;
      standings_.Note(id, ClassOf(id), kPoweredEvent, "its agent is here");
    }
  }
  if (proven && !AnySwitched(agent)) agent.reboot_until.reset();
}

std::map<std::string, TrackerCore::PowerOrder> TrackerCore::OpenOrders() {
  const int64_t now_ms = WallMs();
  std::map<std::string, PowerOrder> open;
  for (const v1::DeviceEvent& event : store_.Events()) {
    const std::string& id = event.device_id();
    const auto order = open.find(id);
    if (order != open.end() &&
        (event.what() == kRebootedEvent || event.what() == kBrokenEvent ||
         Ends(order->second.verb, event.what()))) {
      open.erase(order);
    }
    const absl::Duration age = absl::Milliseconds(now_ms - event.unix_ms());
    const std::optional<PowerVerb> verb = VerbOf(event.what());
    if (!verb || age < absl::ZeroDuration() || age >= absl::Hours(24)) continue;
    if (*verb == PowerVerb::kCycle) power_.Recall(id, started_ + -age);
    // The last word counts.
    open[id] = {*verb, event.what(), age};
  }
  return open;
}

void TrackerCore::RecallPower() {
  // The board may be off: what was begun is done anew, from its first step.
  for (const auto& [id, order] : OpenOrders()) {
    if (standings_.Find(id) == nullptr) continue;  // forgotten since
    const Device* device = registry_.FindDevice(id);
    Agent* agent =
        device == nullptr ? nullptr : registry_.FindAgent(device->agent_id);
    const bool late = order.age >= PowerBook::kGiveUp;
    const std::string when = absl::StrCat(
        order.what, " was begun ",
        absl::FormatDuration(absl::Trunc(order.age, absl::Seconds(1))),
        " before the tracker was restarted");
    if (late && order.verb == PowerVerb::kOff) {
      // Its board may be at work again, by hand.
      if (agent != nullptr && agent->presence != v1::PRESENCE_LOST) {
        standings_.Note(id, ClassOf(id), kLapsedEvent,
                        when + "; give it again if the board has power");
      }
      continue;
    }
    if (!power_.Resume(id, order.verb, started_ + -order.age, started_)) {
      continue;
    }
    standings_.Note(id, ClassOf(id), kResumedEvent,
                    absl::StrCat(when, "; it begins anew",
                                 late ? " unless the board shows up" : ""));
    if (agent != nullptr && order.verb != PowerVerb::kOff) {
      agent->reboot_until = started_ + (late ? PowerBook::kGiveUp
                                             : PowerBook::kGiveUp - order.age);
    }
  }
}

}  // namespace regatta

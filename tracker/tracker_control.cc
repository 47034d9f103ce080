// TrackerCore: what people decide about devices, and what follows from it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

constexpr int kDefaultEvents = 100;
constexpr size_t kNamedInErrors = 10;

bool HasLabels(const v1::DeviceStanding& standing,
               const google::protobuf::Map<std::string, std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = standing.labels().find(label.first);
    return found != standing.labels().end() &&
           (label.second.empty() || found->second == label.second);
  });
}

bool IsEmpty(const v1::DeviceSelector& selector) {
  return selector.device_ids().empty() && selector.device_class().empty() &&
         selector.labels().empty();
}

// "approved", "drained"; of a label what was set.
std::string WhatHappened(const v1::ControlDevicesRequest& request) {
  if (request.command() == v1::DEVICE_COMMAND_LABEL) {
    std::vector<std::string> set;
    for (const auto& [name, value] : request.labels()) {
      set.push_back(absl::StrCat(name, "=", value));
    }
    std::sort(set.begin(), set.end());
    return absl::StrCat("label ", absl::StrJoin(set, " "));
  }
  return DeviceCommandName(request.command());
}

}  // namespace

bool TrackerCore::AutoApproved(const Agent& agent,
                               const v1::DeviceInfo& info) const {
  const AutoApprove& approve = options_.fleet.auto_approve;
  const auto board = options_.fleet.boards.find(info.device_id());
  const bool by_label =
      board != options_.fleet.boards.end() &&
      std::any_of(board->second.labels.begin(), board->second.labels.end(),
                  [&](const auto& label) {
                    return approve.labels.contains(
                        absl::StrCat(label.first, "=", label.second));
                  });
  return approve.all || (approve.local && agent.local) || by_label ||
         approve.classes.contains(info.device_class());
}

void TrackerCore::Admit(const Agent& agent, const v1::DeviceInfo& info) {
  const v1::DeviceStanding* known = standings_.Find(info.device_id());
  const bool same_agent = known != nullptr && known->agent_id() == agent.id;
  const bool approved = AutoApproved(agent, info);
  if (same_agent && (known->trust() != v1::TRUST_PENDING || !approved)) return;
  const int64_t now_ms = WallMs();
  v1::DeviceStanding standing =
      known == nullptr ? NewStanding(info.device_id(), agent.id, now_ms)
                       : *known;
  standing.set_agent_id(agent.id);
  if (const auto board = options_.fleet.boards.find(info.device_id());
      known == nullptr && board != options_.fleet.boards.end()) {
    standing.mutable_labels()->insert(board->second.labels.begin(),
                                      board->second.labels.end());
  }
  std::string reason;
  if (known != nullptr && !same_agent) {
    reason = absl::StrCat("now served by agent ", agent.id, ", before by ",
                          known->agent_id());
    // What it was quarantined for may have left with the other agent, but
    // nobody has said so.
    if (known->trust() != v1::TRUST_QUARANTINED) {
      SetTrust(v1::TRUST_PENDING, reason, kByTracker, now_ms, &standing);
    }
  }
  if (standing.trust() == v1::TRUST_PENDING && approved) {
    SetTrust(v1::TRUST_UNKNOWN, "approved by --auto-approve", kByTracker,
             now_ms, &standing);
    standing.set_canaries_owed(1);
  }
  standings_.Set(std::move(standing), info.device_class(),
                 approved ? "approved" : "waits for approval", reason);
  waits_changed_ = true;
}

std::string TrackerCore::ClassOf(const std::string& device_id) const {
  const auto found = registry_.devices().find(device_id);
  return found == registry_.devices().end() ? ""
                                            : found->second.info.device_class();
}

absl::StatusOr<std::vector<std::string>> TrackerCore::Select(
    const v1::DeviceSelector& selector) const {
  std::vector<std::string> all;
  for (const auto& [id, standing] : standings_.all()) all.push_back(id);
  const auto listed = [&all] {
    if (all.empty()) return std::string("there is none");
    const size_t shown = std::min(all.size(), kNamedInErrors);
    return absl::StrCat(
        "there are: ", absl::StrJoin(all.begin(), all.begin() + shown, ", "),
        shown < all.size() ? ", ..." : "");
  };
  std::set<std::string> named(selector.device_ids().begin(),
                              selector.device_ids().end());
  for (const std::string& id : named) {
    if (standings_.Find(id) == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("no device ", id, "; ", listed()));
    }
  }
  std::vector<std::string> found;
  for (const auto& [id, standing] : standings_.all()) {
    if ((named.empty() || named.contains(id)) &&
        (selector.device_class().empty() ||
         selector.device_class() == ClassOf(id)) &&
        HasLabels(standing, selector.labels())) {
      found.push_back(id);
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no device matches the ids, class and labels given; ", listed()));
  }
  return found;
}

absl::StatusOr<v1::ControlDevicesResponse> TrackerCore::ControlDevices(
    const v1::ControlDevicesRequest& request) {
  RETURN_IF_ERROR(CheckControl(request));
  ASSIGN_OR_RETURN(std::vector<std::string> ids, Select(request.devices()));
  std::erase_if(ids, [&](const std::string& id) {
    return PassesOver(request, *standings_.Find(id));
  });
  if (ids.empty()) {
    return absl::FailedPreconditionError(
        "every device of this class and these labels is retired, or reserved "
        "by somebody else; name those that you mean by id");
  }
  RETURN_IF_ERROR(CheckPower(request.command(), ids));
  const int64_t now_ms = WallMs();
  v1::ControlDevicesResponse response;
  std::vector<v1::DeviceStanding> changed;
  std::vector<v1::DeviceEvent> events;
  for (const std::string& id : ids) {
    v1::ControlledDevice& device = *response.add_devices();
    device.set_device_id(id);
    *device.mutable_standing() = *standings_.Find(id);
    ASSIGN_OR_RETURN(const bool changes,
                     ApplyCommand(request, now_ms, device.mutable_standing()));
    device.set_changed(changes);
    if (!changes) continue;
    changed.push_back(device.standing());
    v1::DeviceEvent& event = events.emplace_back();
    event.set_unix_ms(now_ms);
    event.set_device_id(id);
    event.set_device_class(ClassOf(id));
    event.set_what(WhatHappened(request));
    event.set_reason(request.reason());
    event.set_by(request.by());
  }
  if (!changed.empty()) {
    RETURN_IF_ERROR(standings_.Commit(changed, std::move(events)));
  }
  if (request.command() == v1::DEVICE_COMMAND_RELEASE &&
      !request.devices().device_class().empty()) {
    LiftBrake(request.devices().device_class(),
              absl::StrCat("released by ", request.by()));
  }
  for (const v1::DeviceStanding& standing : changed) {
    FollowStanding(standing.device_id());
    StartPower(request.command(), standing.device_id());
  }
  Settle();
  for (v1::ControlledDevice& device : *response.mutable_devices()) {
    device.mutable_standing()->clear_canary_times();
  }
  return response;
}

absl::StatusOr<v1::DeviceHistoryResponse> TrackerCore::DeviceHistory(
    const v1::DeviceHistoryRequest& request) const {
  const auto most = static_cast<int32_t>(FleetStore::kKeptEvents);
  if (request.limit() < 0 || request.limit() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit is ", request.limit(), ", must be 0 to ", most));
  }
  std::set<std::string> wanted;
  const bool all = IsEmpty(request.devices());
  if (!all) {
    ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                     Select(request.devices()));
    wanted.insert(ids.begin(), ids.end());
  }
  const std::string& of_class = request.devices().device_class();
  v1::DeviceHistoryResponse response;
  for (v1::DeviceEvent& event : standings_.Events(
           [&](const v1::DeviceEvent& e) {
             return all || wanted.contains(e.device_id()) ||
                    (e.device_id().empty() && !of_class.empty() &&
                     e.device_class() == of_class);
           },
           static_cast<size_t>(request.limit() == 0 ? kDefaultEvents
                                                    : request.limit()))) {
    *response.add_events() = std::move(event);
  }
  return response;
}

void TrackerCore::FollowStanding(const std::string& device_id) {
  waits_changed_ = true;
  Device* device = registry_.FindDevice(device_id);
  if (device == nullptr) return;
  const v1::DeviceStanding& standing = *standings_.Find(device_id);
  if (standing.operator_state() == v1::OPERATOR_STATE_DRAINING) {
    const Agent& agent = *registry_.FindAgent(device->agent_id);
    if (agent.session && HoldsWork(device_id)) {
      v1::TrackerMessage message;
      v1::Drain& drain = *message.mutable_drain();
      drain.set_reason(standing.operator_standing().reason());
      drain.add_device_ids(device_id);
      Send(*agent.session, std::move(message));
    }
  } else if (standing.operator_state() != v1::OPERATOR_STATE_NORMAL ||
             standing.trust() == v1::TRUST_PENDING ||
             standing.trust() == v1::TRUST_QUARANTINED ||
             standing.trust() == v1::TRUST_BROKEN) {
    ClearDevice(device_id);
  }
  Agent& agent = *registry_.FindAgent(device->agent_id);
  Reindex(agent);
  LookSoon(agent);
}

void TrackerCore::ClearDevice(const std::string& device_id) {
  const Device* device = registry_.FindDevice(device_id);
  if (device == nullptr) return;
  const std::string agent_id = device->agent_id;
  const bool connected = registry_.FindAgent(agent_id)->session.has_value();
  for (const std::string& id : leases_.OfAgent(agent_id)) {
    const Lease lease = *leases_.Find(id);
    if (!lease.device_id.empty() && lease.device_id != device_id) continue;
    revoked_[lease.epoch] = {device_id, agent_id, clock_.Steady(),
                             /*confirmed=*/!connected};
    RevokeLease(id);
    if (WorkItem* work = FindWork(id)) Requeue(*work);
  }
}

bool TrackerCore::HoldsWork(const std::string& device_id) const {
  const auto device = registry_.devices().find(device_id);
  if (device == registry_.devices().end()) return false;
  if (leases_.Load(device->second.agent_id, device_id) > 0) return true;
  const SteadyTime now = clock_.Steady();
  return std::any_of(revoked_.begin(), revoked_.end(), [&](const auto& entry) {
    const Revoked& revoked = entry.second;
    return revoked.device_id == device_id && !revoked.confirmed &&
           now - revoked.at < options_.confirm_stop;
  });
}

void TrackerCore::ConfirmStop(const Agent& agent, int64_t lease_epoch) {
  const auto found = revoked_.find(lease_epoch);
  if (found != revoked_.end() && found->second.agent_id == agent.id) {
    found->second.confirmed = true;
  }
}

void TrackerCore::ForgetStanding(const std::string& device_id) {
  const v1::DeviceStanding* standing = standings_.Find(device_id);
  if (standing == nullptr) return;
  const bool decided =
      standing->operator_state() != v1::OPERATOR_STATE_NORMAL ||
      (standing->trust() == v1::TRUST_QUARANTINED &&
       standing->trust_standing().by() != kByTracker);
  if (decided) return;
  standings_.Forget(device_id);
  power_.Forget(device_id);
  faults_.Reset(device_id);
}

void TrackerCore::ForgetDevicesOf(const std::string& agent_id) {
  std::vector<std::string> ids;
  for (const auto& [id, standing] : standings_.all()) {
    const Device* device = registry_.FindDevice(id);
    if (standing.agent_id() == agent_id &&
        (device == nullptr || device->agent_id == agent_id)) {
      ids.push_back(id);
    }
  }
  for (const std::string& id : ids) {
    ForgetStanding(id);
    lost_runs_.erase(id);
  }
}

void TrackerCore::AdvanceHolds(SteadyTime now) {
  // An agent that was cut off brings its results when it is back; by then they
  // are as good as any.
  std::erase_if(revoked_, [&](const auto& entry) {
    return now - entry.second.at > options_.lease + options_.lost;
  });
  for (const std::string& id : standings_.Due()) {
    v1::DeviceStanding standing = *standings_.Find(id);
    if (standing.operator_state() == v1::OPERATOR_STATE_DRAINING) {
      ClearDevice(id);
      continue;
    }
    const std::string what = OperatorStateName(standing.operator_state());
    EndHold(WallMs(), &standing);
    standings_.Set(std::move(standing), ClassOf(id), "resume",
                   absl::StrCat("the time of ", what, " is over"));
    FollowStanding(id);
  }
  std::vector<std::string> drained;
  for (const std::string& id : standings_.draining()) {
    if (!HoldsWork(id)) drained.push_back(id);
  }
  for (const std::string& id : drained) {
    v1::DeviceStanding standing = *standings_.Find(id);
    EndDraining(WallMs(), &standing);
    const std::string what = OperatorStateName(standing.operator_state());
    standings_.Set(std::move(standing), ClassOf(id), what, "holds no work");
    FollowStanding(id);
  }
}

}  // namespace regatta

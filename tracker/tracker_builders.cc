// TrackerCore: builders, and the boards that have their modules from them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/device_build.h"
#include "tracker/tracker_core.h"

namespace regatta {

bool TrackerCore::OnRelayed(SessionId session,
                            const v1::AgentMessage& message) {
  switch (message.message_case()) {
    case v1::AgentMessage::kBuildOrder:
      relay_.OnOrder(session, message.build_order());
      return true;
    case v1::AgentMessage::kBuildAnswer:
      relay_.OnAnswer(session, message.build_answer());
      return true;
    case v1::AgentMessage::kBlobAsk:
      relay_.OnBlobAsk(session, message.blob_ask());
      return true;
    case v1::AgentMessage::kBlobChunk:
      relay_.OnChunk(session, message.blob_chunk());
      return true;
    case v1::AgentMessage::kBuildEnd:
      relay_.OnEnd(session, message.build_end());
      return true;
    default:
      return false;
  }
}

void TrackerCore::FlushRelay() {
  for (SendToAgent& send : relay_.TakeMessages()) {
    Send(send.session, std::move(send.message));
  }
  if (builders_seen_ == relay_.change()) return;
  builders_seen_ = relay_.change();
  waits_changed_ = true;
  for (auto& [id, agent] : registry_.agents()) {
    if (agent.measure_only) Reindex(agent);
  }
}

std::string TrackerCore::BuilderOf(const Agent& agent,
                                   const Device& device) const {
  if (!agent.measure_only || !agent.session) return "";
  return relay_.BuilderFor(*agent.session, NeedsOf(device));
}

void TrackerCore::AddWaitingBoards(v1::ListDevicesResponse& response) const {
  // As of every board that has yet to be measured; what is known of its health
  // is of another time.
  constexpr char kUnknown[] = "probing";
  const auto waiting = [](const std::string& why) {
    return absl::StrCat("waiting for a builder",
                        why.empty() ? " to describe it" : ": ", why);
  };
  for (v1::DeviceStatus& status : *response.mutable_devices()) {
    const Agent& agent = registry_.agents().find(status.agent_id())->second;
    if (status.state() != "waiting" || !agent.session) continue;
    if (agent.devices_follow) {
      status.mutable_info()->set_health(kUnknown);
      status.set_obstacle(waiting(relay_.WhyWaiting(*agent.session)));
      continue;
    }
    const Device& device =
        registry_.devices().find(status.info().device_id())->second;
    status.set_obstacle(
        waiting(relay_.WhyNone(*agent.session, NeedsOf(device))));
  }
  const SteadyTime now = clock_.Steady();
  for (const auto& [id, agent] : registry_.agents()) {
    if (!agent.session || !agent.devices_follow || !agent.device_ids.empty()) {
      continue;
    }
    v1::DeviceStatus& status = *response.add_devices();
    status.mutable_info()->set_device_id(id);
    status.mutable_info()->set_health(kUnknown);
    status.set_agent_id(id);
    status.set_presence(agent.presence);
    status.set_state("waiting");
    status.set_state_since_ms(absl::ToInt64Milliseconds(now - agent.connected));
    status.set_last_seen_ms(absl::ToInt64Milliseconds(now - agent.last_seen));
    status.set_agent_version(agent.agent_version);
    status.set_sandbox(agent.sandbox);
    status.set_measure_only(agent.measure_only);
    status.set_has_clock_offset(agent.clock_offset_ms.has_value());
    status.set_clock_offset_ms(agent.clock_offset_ms.value_or(0));
    status.mutable_standing()->set_trust(v1::TRUST_UNKNOWN);
    status.set_obstacle(waiting(relay_.WhyWaiting(*agent.session)));
  }
}

BuildNeeds TrackerCore::NeedsOf(const Device& device) {
  return {KindOf(device.info), ArchitectureOfTarget(device.info.target()),
          device.key.compiler_version, device.key.space_version};
}

bool TrackerCore::WaitsForBuilder(const Agent& agent,
                                  const Device& device) const {
  return agent.measure_only && BuilderOf(agent, device).empty();
}

}  // namespace regatta

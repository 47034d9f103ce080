// TrackerCore: builders, and the boards that have their modules from them.
#include <utility>

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
  return relay_.BuilderFor(
      *agent.session,
      {KindOf(device.info), ArchitectureOfTarget(device.info.target()),
       device.key.compiler_version, device.key.space_version});
}

bool TrackerCore::WaitsForBuilder(const Agent& agent,
                                  const Device& device) const {
  return agent.measure_only && BuilderOf(agent, device).empty();
}

}  // namespace regatta

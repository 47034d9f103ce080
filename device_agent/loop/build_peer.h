// What an agent's session carries about builds, for whoever orders or makes
// them (device_agent/remote).
//
// Thread safety: called from the loop's thread only; must not block.
#ifndef REGATTA_DEVICE_AGENT_LOOP_BUILD_PEER_H_
#define REGATTA_DEVICE_AGENT_LOOP_BUILD_PEER_H_

#include <cstdint>

#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

struct SessionState {
  bool up = false;
  bool relays_builds = false;   // the tracker passes orders on
  int64_t builders_change = 0;  // HeartbeatAck's; 0: not told yet
};

class BuildPeer {
 public:
  virtual ~BuildPeer() = default;
  // The session began, ended, or its builders changed. What was sent before it
  // began is lost.
  virtual void OnSession(const SessionState& state) = 0;
  // build_order, build_answer, blob_ask, blob_chunk or build_end.
  virtual void OnBuildMessage(const v1::TrackerMessage& message) = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_BUILD_PEER_H_

// Why work has not started, in words for people.
#ifndef REGATTA_TRACKER_WAIT_REASON_H_
#define REGATTA_TRACKER_WAIT_REASON_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "tracker/dispatch_queue.h"

namespace regatta {

// A board of the class that the work is for.
struct BoardView {
  std::string device_id;
  MatchKey key;
  v1::Presence presence = v1::PRESENCE_ONLINE;
  absl::Duration silent;  // since its agent was last heard of
  bool stuck = false;
  int credit = 0;
  int load = 0;
  std::string health;
  std::string refusal;
  std::string obstacle;  // why people or the tracker keep work from it; or ""
  bool waits_for_builder = false;  // measure-only, and none that fits is here
};

// "no znver4-2c board is online; 1 lost for 3 min"
// "2 of 2 znver4-2c boards busy"
// "1 znver4-2c board has compiler a1, the job needs b2"
// "3 of 6 rpi5 boards drained by ann: fan swap"
// Durations are coarse, so that the text does not change all the time.
std::string WaitText(const MatchKey& key, const std::vector<BoardView>& boards);

}  // namespace regatta

#endif  // REGATTA_TRACKER_WAIT_REASON_H_

// Why work has not started, in words for people.
#ifndef REGATTA_TRACKER_WAIT_REASON_H_
#define REGATTA_TRACKER_WAIT_REASON_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "tracker/dispatch_queue.h"

namespace regatta {

// What keeps a board from one more unit of work now; of several the first.
enum class NotFree {
  kFree,       // nothing does
  kHeld,       // people, or the tracker's distrust of it
  kBraked,     // its whole class is stopped
  kSwitched,   // its board's power is being switched
  kStuck,      // its agent's work loop stands still
  kAway,       // its agent is not there, or has yet to show its devices
  kUnproven,   // it owes a canary
  kDraining,   // its agent takes nothing
  kNoBuilder,  // measure-only, and no builder that fits is here
  kBusy,       // it holds all it can, or one while it times a run
  kResting,    // it gave work back a moment ago
};
// Whether it works for jobs all the same, so that its turn comes.
inline bool TakesMoreSoon(NotFree why) {
  return why == NotFree::kFree || why == NotFree::kBusy ||
         why == NotFree::kResting;
}

// A board of the class that the work is for.
struct BoardView {
  std::string device_id;
  MatchKey key;
  v1::Presence presence = v1::PRESENCE_ONLINE;
  absl::Duration silent;  // since its agent was last heard of
  NotFree not_free = NotFree::kFree;
  std::string health;
  std::string refusal;
  std::string obstacle;  // in words, where it is held
};

// "no znver4-2c board is online; 1 lost for 3 min"
// "2 of 2 znver4-2c boards busy"
// "1 znver4-2c board has compiler a1, the job needs b2"
// "3 of 6 rpi5 boards drained by ann: fan swap"
// Durations are coarse, so that the text does not change all the time.
std::string WaitText(const MatchKey& key, const std::vector<BoardView>& boards);

}  // namespace regatta

#endif  // REGATTA_TRACKER_WAIT_REASON_H_

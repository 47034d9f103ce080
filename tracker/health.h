// Presence of an agent: what its silence says. Presence is about being there,
// not about trust; it never touches what an operator or a candidate decided.
#ifndef REGATTA_TRACKER_HEALTH_H_
#define REGATTA_TRACKER_HEALTH_H_

#include "absl/time/time.h"
#include "base/clock.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "tracker/tracker_options.h"

namespace regatta {

struct Signs {
  bool connected = false;
  SteadyTime last_seen;
  absl::Duration quiet;  // announced silence, counted from last_seen
};

// ONLINE while connected and heard of; SUSPECT when silent for
// options.suspect or not connected; LOST when silent for options.lost.
v1::Presence PresenceOf(const Signs& signs, SteadyTime now,
                        const TrackerOptions& options);

// Watches the work loop's counter in heartbeats, so that a stuck loop behind a
// live timer shows.
class LoopWatch {
 public:
  void Observe(int64_t work_ticks, SteadyTime now);
  // The counter moved once and has stood still for `limit`. An agent that
  // never counts is not judged.
  bool Stuck(SteadyTime now, absl::Duration limit) const;
  void ExtendBy(absl::Duration stall) { changed_ = changed_ + stall; }
  void Reset() { *this = LoopWatch(); }

 private:
  int64_t ticks_ = 0;
  bool moved_ = false;
  SteadyTime changed_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_HEALTH_H_

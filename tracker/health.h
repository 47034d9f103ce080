// Presence of an agent: what its silence says. Presence is about being there,
// not about trust; it never touches what an operator or a candidate decided.
#ifndef REGATTA_TRACKER_HEALTH_H_
#define REGATTA_TRACKER_HEALTH_H_

#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "base/clock.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "tracker/tracker_options.h"

namespace regatta {

struct Signs {
  bool connected = false;
  SteadyTime last_seen;
  absl::Duration quiet;  // announced silence, counted from last_seen
  // It announced to be back by then.
  std::optional<SteadyTime> returns_by;
};

// ONLINE while connected and heard of; SUSPECT when silent for
// options.suspect or not connected; LOST when silent for options.lost. One that
// is gone as announced is REBOOTING until it is due, then LOST.
v1::Presence PresenceOf(const Signs& signs, SteadyTime now,
                        const TrackerOptions& options);

// Whether a device with this health (fleet_service.proto) takes no work until
// it says otherwise.
bool IsDraining(std::string_view health);

// Watches the work loop's counter in heartbeats, so that a stuck loop behind a
// live timer shows. The counter moves with trials only, so an agent is judged
// while it holds work and from its latest dispatch on. One that never counts is
// not judged.
class LoopWatch {
 public:
  void Observe(int64_t work_ticks, SteadyTime now);
  // The agent was given work: from now on the counter ought to move.
  void Dispatched(SteadyTime now);
  // To be called regularly. An agent that holds work while its counter stands
  // still for `limit` is stuck until the counter moves or, without work, for
  // another `limit`: whether it is well again only work can tell.
  void Judge(bool holds_work, SteadyTime now, absl::Duration limit);
  // When Judge may have something to say next, if the counter moved at all and
  // nothing changes before.
  std::optional<SteadyTime> JudgeAt(bool holds_work,
                                    absl::Duration limit) const;
  bool stuck() const { return stuck_; }
  void ExtendBy(absl::Duration stall) { since_ = since_ + stall; }
  void Reset() { *this = LoopWatch(); }

 private:
  int64_t ticks_ = 0;
  bool moved_ = false;
  bool stuck_ = false;
  // When it became stuck; else the latest dispatch or move of the counter.
  SteadyTime since_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_HEALTH_H_

#include "tracker/health.h"

namespace regatta {

v1::Presence PresenceOf(const Signs& signs, SteadyTime now,
                        const TrackerOptions& options) {
  const absl::Duration silent = now - signs.last_seen - signs.quiet;
  if (silent >= options.lost) return v1::PRESENCE_LOST;
  if (!signs.connected || silent >= options.suspect) {
    return v1::PRESENCE_SUSPECT;
  }
  return v1::PRESENCE_ONLINE;
}

void LoopWatch::Observe(int64_t work_ticks, SteadyTime now) {
  if (work_ticks == ticks_) return;
  moved_ = true;
  ticks_ = work_ticks;
  changed_ = now;
}

bool LoopWatch::Stuck(SteadyTime now, absl::Duration limit) const {
  return moved_ && now - changed_ >= limit;
}

}  // namespace regatta

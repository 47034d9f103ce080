#include "tracker/health.h"

namespace regatta {

bool IsDraining(std::string_view health) {
  return health.starts_with("draining");
}

v1::Presence PresenceOf(const Signs& signs, SteadyTime now,
                        const TrackerOptions& options) {
  if (signs.returns_by && !signs.connected) {
    return now < *signs.returns_by ? v1::PRESENCE_REBOOTING : v1::PRESENCE_LOST;
  }
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
  stuck_ = false;
  ticks_ = work_ticks;
  since_ = now;
}

void LoopWatch::Dispatched(SteadyTime now) {
  if (!stuck_) since_ = now;
}

std::optional<SteadyTime> LoopWatch::JudgeAt(bool holds_work,
                                             absl::Duration limit) const {
  if (!moved_ || stuck_ == holds_work) return std::nullopt;
  return since_ + limit;
}

void LoopWatch::Judge(bool holds_work, SteadyTime now, absl::Duration limit) {
  if (!moved_ || stuck_ == holds_work || now - since_ < limit) return;
  stuck_ = !stuck_;
  since_ = now;
}

}  // namespace regatta

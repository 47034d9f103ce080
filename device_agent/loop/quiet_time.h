// When an agent keeps silent because runs are being timed on its board: timers
// and network interrupts stay out of them.
//
// Silence begins with a run and ends with it, or with the last of several that
// overlap, and at the latest after kLongest; after kLongestShared where devices
// overlap, so that one's results do not wait for the others for ever. It begins
// again once no run is timed.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_LOOP_QUIET_TIME_H_
#define REGATTA_DEVICE_AGENT_LOOP_QUIET_TIME_H_

#include <algorithm>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {

class QuietTime {
 public:
  static constexpr absl::Duration kLongest = absl::Seconds(30);
  static constexpr absl::Duration kLongestShared = absl::Seconds(2);

  // A run on the device begins, of at most `longest`; zero: it is over.
  void Set(const std::string& device_id, SteadyTime now,
           absl::Duration longest) {
    if (longest <= absl::ZeroDuration()) {
      runs_.erase(device_id);
      return;
    }
    if (runs_.empty()) began_ = until_ = now;
    runs_.insert(device_id);
    until_ = std::max(until_, now + longest);
    until_ = std::min(until_,
                      began_ + (runs_.size() > 1 ? kLongestShared : kLongest));
  }
  bool Active(SteadyTime now) const { return !runs_.empty() && now < until_; }
  // REQUIRES: Active.
  SteadyTime until() const { return until_; }

 private:
  std::set<std::string> runs_;  // devices
  SteadyTime began_, until_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_QUIET_TIME_H_

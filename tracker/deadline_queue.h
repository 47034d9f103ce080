// Deadlines by key, so that what is due is found without looking at the rest.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_DEADLINE_QUEUE_H_
#define REGATTA_TRACKER_DEADLINE_QUEUE_H_

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracker/indexed_map.h"

namespace regatta {

class DeadlineQueue {
 public:
  // Takes the place of the key's present deadline.
  void Set(const std::string& key, SteadyTime at) {
    auto [known, fresh] = times_.try_emplace(key, at);
    if (!fresh) {
      if (known->second == at) return;
      queue_.erase({known->second, key});
      known->second = at;
    }
    queue_.emplace(at, key);
  }
  // Only where the key has none, or a later one.
  void SetNoLater(const std::string& key, SteadyTime at) {
    const auto known = times_.find(key);
    if (known == times_.end() || at < known->second) Set(key, at);
  }
  void Erase(std::string_view key) {
    const auto known = times_.find(key);
    if (known == times_.end()) return;
    queue_.erase({known->second, known->first});
    times_.erase(known);
  }
  std::optional<SteadyTime> Find(std::string_view key) const {
    const auto known = times_.find(key);
    if (known == times_.end()) return std::nullopt;
    return known->second;
  }
  // Those whose time has come, which leave the queue; in the order of keys.
  std::vector<std::string> TakeDue(SteadyTime now) {
    std::vector<std::string> due;
    while (!queue_.empty() && queue_.begin()->first <= now) {
      due.push_back(queue_.begin()->second);
      times_.erase(due.back());
      queue_.erase(queue_.begin());
    }
    std::sort(due.begin(), due.end());
    return due;
  }

 private:
  NameMap<SteadyTime> times_;
  std::set<std::pair<SteadyTime, std::string>> queue_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_DEADLINE_QUEUE_H_

#include "tracker/dispatch_queue.h"

#include <algorithm>

#include "base/check.h"

namespace regatta {

void DispatchQueue::Push(const Entry& entry) {
  std::list<Line>& band = queues_[entry.key][entry.priority];
  auto line = std::find_if(band.begin(), band.end(),
                           [&](const Line& l) { return l.job == entry.job; });
  if (line == band.end()) line = band.insert(band.end(), Line{entry.job, {}});
  CHECK(line->units.emplace(entry.sequence, entry.assignment_id).second)
      << "sequence " << entry.sequence << " is queued already";
}

void DispatchQueue::Remove(const Entry& entry) {
  auto queue = queues_.find(entry.key);
  CHECK(queue != queues_.end()) << entry.assignment_id;
  auto band = queue->second.find(entry.priority);
  CHECK(band != queue->second.end()) << entry.assignment_id;
  auto line = std::find_if(band->second.begin(), band->second.end(),
                           [&](const Line& l) { return l.job == entry.job; });
  CHECK(line != band->second.end()) << entry.assignment_id;
  CHECK(line->units.erase(entry.sequence) == 1) << entry.assignment_id;
  if (line->units.empty()) band->second.erase(line);
  if (band->second.empty()) queue->second.erase(band);
  if (queue->second.empty()) queues_.erase(queue);
}

bool DispatchQueue::PlaceNext(
    const MatchKey& key, const std::function<bool(const std::string&)>& place) {
  auto queue = queues_.find(key);
  if (queue == queues_.end()) return false;
  Bands& bands = queue->second;
  for (auto band = bands.begin(); band != bands.end(); ++band) {
    std::list<Line>& lines = band->second;
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      auto unit =
          std::find_if(line->units.begin(), line->units.end(),
                       [&](const auto& entry) { return place(entry.second); });
      if (unit == line->units.end()) continue;
      line->units.erase(unit);
      if (line->units.empty()) {
        lines.erase(line);
      } else {
        lines.splice(lines.end(), lines, line);
      }
      if (lines.empty()) bands.erase(band);
      if (bands.empty()) queues_.erase(queue);
      return true;
    }
  }
  return false;
}

std::vector<DispatchQueue::Waiting> DispatchQueue::Summary() const {
  std::vector<Waiting> summary;
  for (const auto& [key, bands] : queues_) {
    for (const auto& [priority, lines] : bands) {
      for (const Line& line : lines) {
        summary.push_back(
            {key, line.job, static_cast<int64_t>(line.units.size())});
      }
    }
  }
  return summary;
}

std::vector<MatchKey> DispatchQueue::Keys() const {
  std::vector<MatchKey> keys;
  for (const auto& [key, bands] : queues_) keys.push_back(key);
  return keys;
}

}  // namespace regatta

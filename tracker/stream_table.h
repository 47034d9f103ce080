// The open streams of a service by number. Thread-safe.
#ifndef REGATTA_TRACKER_STREAM_TABLE_H_
#define REGATTA_TRACKER_STREAM_TABLE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace regatta {

template <typename Id, typename Reactor>
class StreamTable {
 public:
  // Numbers are never given twice.
  Id Add(std::shared_ptr<Reactor> reactor) {
    std::lock_guard lock(mutex_);
    const Id id{++last_};
    reactors_.emplace(id, std::move(reactor));
    return id;
  }
  // nullptr: no longer open.
  std::shared_ptr<Reactor> Find(Id id) const {
    std::lock_guard lock(mutex_);
    auto it = reactors_.find(id);
    return it == reactors_.end() ? nullptr : it->second;
  }
  void Remove(Id id) {
    std::lock_guard lock(mutex_);
    reactors_.erase(id);
  }

 private:
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<Id, std::shared_ptr<Reactor>> reactors_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_STREAM_TABLE_H_

// Work that waits for a device.
//
// There is one queue per kind of board that can do the work (MatchKey). In it:
// higher priority first; within a priority one unit of each job in turn, so
// that a large job does not starve a small one; within a job the order of
// submission.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_DISPATCH_QUEUE_H_
#define REGATTA_TRACKER_DISPATCH_QUEUE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// What a board and work must agree on.
struct MatchKey {
  std::string device_class;
  std::string compiler_version;
  std::string space;
  int32_t space_version = 0;
  friend auto operator<=>(const MatchKey&, const MatchKey&) = default;
};

// A job of one server; servers number their jobs each for itself.
struct JobKey {
  std::string server_id;
  int64_t job_id = 0;
  friend auto operator<=>(const JobKey&, const JobKey&) = default;
};

class DispatchQueue {
 public:
  struct Entry {
    MatchKey key;
    JobKey job;
    int32_t priority = 0;
    int64_t sequence = 0;  // of submission; unique
    std::string assignment_id;
  };

  void Push(const Entry& entry);
  // REQUIRES: the entry was pushed and is still there.
  void Remove(const Entry& entry);
  bool Empty(const MatchKey& key) const { return !queues_.contains(key); }

  // Offers entries of `key` to `place`, best first, until it returns true for
  // one; that entry leaves the queue and its job goes to the end of the line.
  // False: none was taken.
  bool PlaceNext(const MatchKey& key,
                 const std::function<bool(const std::string&)>& place);

  struct Waiting {
    MatchKey key;
    JobKey job;
    int64_t count = 0;
  };
  // Everything that waits, by kind of board and job.
  std::vector<Waiting> Summary() const;
  // Kinds of board that something waits for.
  std::vector<MatchKey> Keys() const;

 private:
  struct Line {
    JobKey job;
    std::map<int64_t, std::string> units;  // sequence -> assignment
  };
  // Priority, highest first -> jobs in turn.
  using Bands = std::map<int32_t, std::list<Line>, std::greater<>>;
  std::map<MatchKey, Bands> queues_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_DISPATCH_QUEUE_H_

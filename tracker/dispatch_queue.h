// Work that waits for a device.
//
// There is one queue per kind of board that can do the work (MatchKey). In it
// higher priority goes first, strictly. Within a priority the jobs share the
// device class by device time in proportion to their weights, and within a job
// its tasks do, whatever a unit of each costs (see fair_share.h); within a task
// the order of submission. Device time is what results say (DeviceNs); while a
// unit runs, the mean of its task's recent ones stands in for it. Shares count
// since this process started.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_DISPATCH_QUEUE_H_
#define REGATTA_TRACKER_DISPATCH_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracker/fair_share.h"

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
    int32_t task = 0;  // of the job
    int trials = 1;
    double job_weight = 1;
    double task_weight = 1;
  };

  void Push(const Entry& entry, SteadyTime now);
  // REQUIRES: the entry was pushed and is still there.
  void Remove(const Entry& entry, SteadyTime now);
  bool Empty(const MatchKey& key) const { return !queues_.contains(key); }

  // Offers entries of `key` to `place`, best first, until it returns true for
  // one; that entry leaves the queue and runs from now on. False: none was
  // taken.
  bool PlaceNext(const MatchKey& key,
                 const std::function<bool(const std::string&)>& place);
  // A trial of a unit that runs has held a device for so long. Without effect
  // for one that does not run.
  void Charge(std::string_view assignment_id, absl::Duration used);
  // The unit runs no more. Without effect for one that does not run.
  void Ended(std::string_view assignment_id, SteadyTime now);

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
  using Units = std::map<int64_t, Entry>;  // by sequence
  using Band = std::map<JobKey, std::map<int32_t, Units>>;
  // Priority, highest first.
  using Bands = std::map<int32_t, Band, std::greater<>>;
  // Who had how much of a class, among the work of one priority. Work for
  // boards with another compiler counts there, too.
  struct Shares {
    FairShare<JobKey> jobs;
    std::map<JobKey, FairShare<int32_t>> tasks;
    // Seconds of a trial, over the latest of its task.
    std::map<std::pair<JobKey, int32_t>, double> cost;
  };
  struct Running {
    Entry entry;
    double estimate = 0;  // charged, in seconds
  };

  Shares& SharesOf(const Entry& entry);
  void Join(const Entry& entry, SteadyTime now);
  void Leave(const Entry& entry, SteadyTime now);
  void ChargeSeconds(const Entry& entry, double seconds);
  double CostOf(const Entry& entry);
  void StartRunning(const Entry& entry);
  void Erase(const Entry& entry);
  // The first unit that `place` takes, jobs and tasks in the order of their
  // shares. Null: none.
  const Entry* FirstTaken(
      const Band& band, const Shares& shares,
      const std::function<bool(const std::string&)>& place) const;

  std::map<MatchKey, Bands> queues_;
  std::map<std::pair<std::string, int32_t>, Shares> shares_;  // class, priority
  std::map<std::string, Running, std::less<>> running_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_DISPATCH_QUEUE_H_

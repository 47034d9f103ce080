// Work that waits for a device.
//
// There is one queue per kind of board that can do the work (MatchKey). In it
// higher priority goes first; but for every ten minutes in which work of a
// priority waits and gets nothing, it is offered one place further up, so that
// nothing starves. Within a priority the users share the device class by device
// time in proportion to their weights, within a user the jobs, and within a job
// its tasks, whatever a unit of each costs (see fair_share.h); within a task
// the order of submission. Jobs of a user that have a deadline go before those
// that have none, the earliest first. A user with a bound has no more of what a
// class's devices hold at once, while somebody else waits for them. Device time
// is what results say (DeviceNs); while a unit runs, the mean of its task's
// recent ones stands in for it. Shares count since this process started.
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
#include "tracker/indexed_map.h"

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
    std::string user;
    int64_t deadline_unix_ms = 0;  // 0: none
    int32_t priority = 0;
    int64_t sequence = 0;  // of submission; unique
    std::string assignment_id;
    int32_t task = 0;  // of the job
    int trials = 1;
    double job_weight = 1;
    double task_weight = 1;
  };

  // Work of a priority that waits for so long without getting anything rises by
  // one place.
  static constexpr absl::Duration kAgeing = absl::Minutes(10);

  // What an operator grants a user; others have the default.
  struct Grant {
    double weight = 1;
    // Of what a class's devices hold at once, while others wait; rounded up.
    double most_percent = 100;
  };
  explicit DispatchQueue(std::map<std::string, Grant> grants = {})
      : grants_(std::move(grants)) {}

  void Push(const Entry& entry, SteadyTime now);
  // REQUIRES: the entry was pushed and is still there.
  void Remove(const Entry& entry, SteadyTime now);
  bool Empty(const MatchKey& key) const { return !queues_.contains(key); }

  // Offers entries of `key` to `place`, best first, until it returns true for
  // one; that entry leaves the queue and runs from now on. False: none was
  // taken. `credit`: units that the devices of the class hold at once.
  bool PlaceNext(const MatchKey& key, int64_t credit, SteadyTime now,
                 const std::function<bool(const std::string&)>& place);
  // A unit that is not queued runs already: an agent brought it along.
  void RunsAlready(const Entry& entry, SteadyTime now);
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
  using Jobs = std::map<JobKey, std::map<int32_t, Units>>;
  using Band = std::map<std::string, Jobs>;  // by user
  // Priority, highest first.
  using Bands = std::map<int32_t, Band, std::greater<>>;
  // Who had how much of a class, among the work of one priority. Work for
  // boards with another compiler counts there, too.
  struct Shares {
    FairShare<std::string> users;
    std::map<std::string, FairShare<JobKey>> jobs;  // by user
    std::map<JobKey, FairShare<int32_t>> tasks;
    // Seconds of a trial, over the latest of its task.
    std::map<std::pair<JobKey, int32_t>, double> cost;
    std::map<JobKey, int64_t> deadlines;  // of jobs that have one
    // Since when work of the priority waits and gets nothing; counts while some
    // waits.
    SteadyTime hungry_since;
  };
  struct Running {
    Entry entry;
    double estimate = 0;  // charged, in seconds
  };

  Shares& SharesOf(const Entry& entry);
  void Join(const Entry& entry, SteadyTime now);
  // Drops what belonged to users and jobs that are forgotten.
  static void Sweep(Shares& shares);
  void Leave(const Entry& entry, SteadyTime now);
  void ChargeSeconds(const Entry& entry, double seconds);
  double CostOf(const Entry& entry);
  void StartRunning(const Entry& entry);
  void Erase(const Entry& entry);
  // The first unit that `place` takes, jobs and tasks in the order of their
  // shares. Null: none.
  const Entry* FirstTaken(
      const Band& band, const Shares& shares,
      const std::function<bool(const std::string& user)>& may,
      const std::function<bool(const std::string&)>& place) const;
  const Entry* FirstOfUser(
      const Jobs& jobs, const FairShare<JobKey>& share, const Shares& shares,
      const std::function<bool(const std::string&)>& place) const;
  // Priorities of the class, in the order in which they are served now.
  std::vector<int32_t> Order(const std::string& device_class,
                             const Bands& bands, SteadyTime now) const;
  const Grant& GrantOf(const std::string& user) const;

  std::map<MatchKey, Bands> queues_;
  std::map<std::pair<std::string, int32_t>, Shares> shares_;  // class, priority
  NameMap<Running> running_;
  std::map<std::pair<std::string, std::string>, int> held_;  // class, user
  const std::map<std::string, Grant> grants_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_DISPATCH_QUEUE_H_

// Who runs what until when.
//
// A lease is made when an Assign is sent and has an epoch of its own: a message
// about another epoch of the same assignment is stale. Epochs grow with every
// dispatch and over restarts of the tracker, so that no two dispatches ever
// share one.
//
//   offered  ── AssignmentReply ──►  accepted  ── HeartbeatAck ──► (renewed)
//      │ accept deadline                │ lease runs out, agent lost
//      ▼                                ▼
//   requeued, same attempt           requeued, next attempt
//
// Not thread-safe. Pointers stay valid until the lease is removed.
#ifndef REGATTA_TRACKER_LEASE_TABLE_H_
#define REGATTA_TRACKER_LEASE_TABLE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "tracker/deadline_queue.h"
#include "tracker/indexed_map.h"

namespace regatta {

struct Lease {
  std::string assignment_id;
  std::string agent_id;
  // "" when an agent brought it along and serves several devices: it then
  // counts against each of them.
  std::string device_id;
  int attempt = 1;
  int64_t epoch = 0;
  bool accepted = false;
  // To be accepted, or renewed; set by LeaseTable::Until once it is in there.
  SteadyTime deadline;
  // This process stood still while it ran, so that its agent may have let it go
  // for want of renewals: losing it before then is nobody's attempt.
  SteadyTime excused_until{};
};

class LeaseTable {
 public:
  // Epochs start above every epoch of earlier trackers.
  explicit LeaseTable(int64_t tracker_epoch) : epoch_(tracker_epoch << 32) {}

  int64_t NewEpoch() { return ++epoch_; }
  // REQUIRES: no lease of this assignment.
  Lease& Add(Lease lease);
  // nullptr: no such lease.
  Lease* Find(std::string_view assignment_id);
  void Remove(std::string_view assignment_id);
  // It ends then. REQUIRES: it is in the table.
  void Until(Lease& lease, SteadyTime deadline);

  // Assignments of an agent in the order of their ids.
  std::vector<std::string> OfAgent(std::string_view agent_id) const;
  bool Holds(std::string_view agent_id) const {
    return by_agent_.contains(agent_id);
  }
  // Leases that keep the device busy.
  int Load(std::string_view agent_id, std::string_view device_id) const;
  // Assignments whose deadline has come; the caller removes them.
  std::vector<std::string> TakeExpired(SteadyTime now);
  // This process was stalled: moves every deadline, and excuses losses.
  void ExtendAll(absl::Duration stall, SteadyTime excused_until);

  const IndexedMap<std::string, Lease>& all() const { return leases_; }

  // CHECKs what is kept beside the leases against them.
  void CheckIndices() const;

 private:
  int64_t epoch_;
  IndexedMap<std::string, Lease> leases_;
  NameMap<std::set<std::string>> by_agent_;
  // Deadlines or earlier: one that moved on moves here once it would have come.
  DeadlineQueue queue_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_LEASE_TABLE_H_

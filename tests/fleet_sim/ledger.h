// What the boards of a simulated fleet know: which trials they were given,
// which results they made durable, which were acknowledged. Audited at the end
// against the tuning log.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_FLEET_SIM_LEDGER_H_
#define REGATTA_TESTS_FLEET_SIM_LEDGER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta::fleet_sim {

class Ledger {
 public:
  // A board took the assignment.
  void Assigned(const v1::Assignment& assignment);
  // A board ran the trial to its end, and its spool holds the result.
  void Finished(const v1::TrialResult& result);
  void Acknowledged(const v1::TrialAck& ack);
  // A promise was broken; said in words.
  void Broken(const std::string& what) { broken_.push_back(what); }

  int64_t assigned() const { return static_cast<int64_t>(trials_.size()); }
  int64_t finished() const { return finished_; }
  int64_t acknowledged() const { return acknowledged_; }
  int64_t repeated_acks() const { return repeated_acks_; }
  int64_t rejected() const { return rejected_; }

  // Promises that were broken so far, in words.
  const std::vector<std::string>& broken() const { return broken_; }
  std::vector<std::string> FinishedTrials() const;

  struct Audit {
    int64_t records = 0;              // in the log
    int64_t of_boards = 0;            // with what a board had sent
    int64_t of_tracker = 0;           // the tracker's own verdicts
    std::vector<std::string> broken;  // promises, in words; at most a few
    int64_t broken_count = 0;
  };
  // Reads the log at `path`, which nobody else may hold, for the workloads with
  // these keys.
  absl::StatusOr<Audit> AuditLog(const std::string& path,
                                 const std::vector<std::string>& keys) const;

 private:
  struct Trial {
    bool acknowledged = false;
    std::vector<uint64_t> sent;  // fingerprints of the results made of it
  };

  std::unordered_map<std::string, Trial> trials_;
  std::vector<std::string> broken_;
  int64_t finished_ = 0;
  int64_t acknowledged_ = 0;   // trials
  int64_t repeated_acks_ = 0;  // of trials acknowledged before
  int64_t rejected_ = 0;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_LEDGER_H_

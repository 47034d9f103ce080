// What must hold of a fleet after its faults are over, read from what it says
// and from what is left of it.
#ifndef REGATTA_TESTS_CHAOS_CHECKER_H_
#define REGATTA_TESTS_CHAOS_CHECKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/chaos/cluster.h"

namespace regatta::testing {

struct Findings {
  // One line for each invariant that is broken: its name, then what was seen.
  std::vector<std::string> broken;
  std::map<std::string, int64_t> outcomes;  // of records
  int64_t records = 0, acknowledged = 0;
  int pairs_compared = 0;
};

// Asks everything that needs the daemons: `jobs` are by workload, with the
// trials that each was given.
//   one outcome    every trial has one record, of a known outcome; as many new
//                  candidates as the job counts and was asked for; no schedule
//                  counts twice
//   acknowledged   every result that an agent was told was stored is in the log
//   job ended      done, with all trials
//   no overlap     no two timed runs shared a processor
//   best known     what the records give
//   log sound      as `regatta log check` says
struct AskedJob {
  int64_t job = 0;
  std::string workload;
  int64_t trials = 0;
};
Findings CheckFleet(const Cluster& cluster, const std::vector<AskedJob>& jobs);

// Stops the fleet:
//   stops          every daemon ends on SIGTERM, in time
//   nothing left   no process is left
void CheckEnd(Cluster* cluster, Findings* findings);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_CHECKER_H_

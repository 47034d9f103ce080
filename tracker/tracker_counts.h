// What a tracker has counted since it started.
#ifndef REGATTA_TRACKER_TRACKER_COUNTS_H_
#define REGATTA_TRACKER_TRACKER_COUNTS_H_

#include <cstdint>
#include <map>

#include "regatta/v1/trial.pb.h"

namespace regatta {

struct TrackerCounts {
  int64_t heartbeats = 0;
  int64_t assignments = 0;          // sent to agents
  int64_t assignments_refused = 0;  // by agents
  int64_t leases_expired = 0;
  int64_t agents_lost = 0;
  int64_t given_up = 0;  // work, after its last attempt
  int64_t refusals = 0;  // Hellos, sessions and results that were refused
  std::map<v1::Outcome, int64_t> results;  // from agents, canaries not counted
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_TRACKER_COUNTS_H_

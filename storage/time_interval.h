// How well a record's own blocks pin its time down.
#ifndef REGATTA_STORAGE_TIME_INTERVAL_H_
#define REGATTA_STORAGE_TIME_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "regatta/v1/trial.pb.h"

namespace regatta {

// The 95 % interval, in ns rounded outwards, of the median time per call over a
// result's kept blocks, each block one draw: MedianInterval95 of
// base/robust_stats.h. Nothing for fewer than 6 blocks, whose least and largest
// hold the median with less than 95 %.
std::optional<std::pair<int64_t, int64_t>> TimeInterval(
    const v1::TrialResult& result);

}  // namespace regatta

#endif  // REGATTA_STORAGE_TIME_INTERVAL_H_

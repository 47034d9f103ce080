// How far two timings of one thing differ. Pure.
#ifndef REGATTA_DEVICE_AGENT_PROBE_NOISE_FLOOR_H_
#define REGATTA_DEVICE_AGENT_PROBE_NOISE_FLOOR_H_

#include <cstdint>
#include <functional>

namespace regatta {

// The A/A spread: of each session's two medians, the relative difference; of
// these the 95th percentile. `time_block` times one block of fixed work.
double NoiseFloor(const std::function<int64_t()>& time_block, int sessions,
                  int blocks_per_side);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_NOISE_FLOOR_H_

// From the time of one dependent load, by working set, to the sizes of the
// caches. Pure functions.
#ifndef REGATTA_DEVICE_AGENT_PROBE_CACHE_LEVELS_H_
#define REGATTA_DEVICE_AGENT_PROBE_CACHE_LEVELS_H_

#include <cstdint>
#include <vector>

namespace regatta {

struct LatencyPoint {
  int64_t bytes = 0;  // working set
  double ns = 0;      // per load
};

// 0: no such level, or none that the curve shows.
struct CacheSizes {
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
};

// Working sets to measure, ascending: four per octave, at sizes that caches
// have (1, 1.25, 1.5 and 1.75 times a power of two).
std::vector<int64_t> CacheProbeSizes(int64_t min_bytes, int64_t max_bytes);

// True once more points of larger sets would only repeat the memory's latency.
bool ReachedMemory(const std::vector<LatencyPoint>& curve);

// A level ends where the time leaves the plateau of that level. Disturbances
// only ever add time, so a point counts as its smallest successor. All zero for
// fewer than four points.
CacheSizes FindCaches(std::vector<LatencyPoint> curve);

// A reported size is believed where the measurement bears it out (within a
// third): it is exact where the measurement is not. Elsewhere the measured one
// stands.
CacheSizes Reconcile(const CacheSizes& probed, const CacheSizes& reported);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_CACHE_LEVELS_H_

#include "device_agent/probe/cache_levels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace regatta {
namespace {

// How far the time may rise within one level.
constexpr double kLevel1Rise = 1.3;
constexpr double kLevel2Rise = 1.5;
// A level's own time shows from sets this much larger than the level below:
// nearer, part of the loads still hits below.
constexpr double kClearOf = 3;
// Memory is at least this much slower than the last cache.
constexpr double kMemoryRise = 1.8;
// No main memory answers a dependent load faster than this.
constexpr double kFastestMemoryNs = 45;

// Index of the last point, from `from` on, that is not above `limit`; the curve
// does not fall. `from` itself counts as below.
size_t LastBelow(const std::vector<LatencyPoint>& curve, size_t from,
                 double limit) {
  size_t last = from;
  while (last + 1 < curve.size() && curve[last + 1].ns <= limit) ++last;
  return last;
}

// The first point that is clear of the level ending at `edge`; size() if none.
size_t ClearOf(const std::vector<LatencyPoint>& curve, size_t edge) {
  const double wanted = kClearOf * static_cast<double>(curve[edge].bytes);
  size_t i = edge;
  while (i < curve.size() && static_cast<double>(curve[i].bytes) < wanted) ++i;
  return i;
}

int64_t Believe(int64_t probed, int64_t reported) {
  if (probed <= 0 || reported <= 0) return probed;
  const double ratio =
      static_cast<double>(reported) / static_cast<double>(probed);
  return ratio > 0.67 && ratio < 1.5 ? reported : probed;
}

}  // namespace

std::vector<int64_t> CacheProbeSizes(int64_t min_bytes, int64_t max_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t base = 1024; base <= max_bytes; base *= 2) {
    for (int64_t quarter = 4; quarter < 8; ++quarter) {
      const int64_t bytes = base / 4 * quarter;
      if (bytes >= min_bytes && bytes <= max_bytes) sizes.push_back(bytes);
    }
  }
  return sizes;
}

bool ReachedMemory(const std::vector<LatencyPoint>& curve) {
  constexpr size_t kFlat = 6;  // an octave and a half
  if (curve.size() < kFlat) return false;
  const auto [low, high] = std::minmax_element(
      curve.end() - kFlat, curve.end(),
      [](const auto& a, const auto& b) { return a.ns < b.ns; });
  return low->ns > kFastestMemoryNs && high->ns < low->ns * 1.12;
}

CacheSizes FindCaches(std::vector<LatencyPoint> curve) {
  CacheSizes sizes;
  if (curve.size() < 4) return sizes;
  for (size_t i = curve.size() - 1; i-- > 0;) {
    curve[i].ns = std::min(curve[i].ns, curve[i + 1].ns);
  }
  const double memory_ns = curve.back().ns;

  const size_t edge1 = LastBelow(curve, 0, curve[0].ns * kLevel1Rise);
  if (edge1 + 1 == curve.size()) return sizes;  // no knee at all
  sizes.l1_bytes = curve[edge1].bytes;

  const size_t level2 = ClearOf(curve, edge1);
  if (level2 >= curve.size() || curve[level2].ns * kMemoryRise > memory_ns) {
    return sizes;
  }
  const size_t edge2 = LastBelow(curve, level2, curve[level2].ns * kLevel2Rise);
  sizes.l2_bytes = curve[edge2].bytes;

  const size_t level3 = ClearOf(curve, edge2);
  if (level3 >= curve.size()) return sizes;
  const double level3_ns = curve[level3].ns;
  if (level3_ns * kMemoryRise <= memory_ns) {
    // A shared cache's end is a slope; its middle is the best guess.
    const size_t edge3 =
        LastBelow(curve, level3, std::sqrt(level3_ns * memory_ns));
    sizes.l3_bytes = curve[edge3].bytes;
  } else if (memory_ns < kFastestMemoryNs) {
    sizes.l3_bytes = curve.back().bytes;  // at least
  }
  return sizes;
}

CacheSizes Reconcile(const CacheSizes& probed, const CacheSizes& reported) {
  return {Believe(probed.l1_bytes, reported.l1_bytes),
          Believe(probed.l2_bytes, reported.l2_bytes),
          Believe(probed.l3_bytes, reported.l3_bytes)};
}

}  // namespace regatta

// Drives everything else out of the caches by streaming through memory.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_CACHE_EVICTION_H_
#define REGATTA_DEVICE_AGENT_RUN_CACHE_EVICTION_H_

#include <cstdint>
#include <vector>

namespace regatta {

class CacheEviction {
 public:
  // REQUIRES: bytes > 0; twice the last-level cache, so that one that does not
  // hold what the inner caches hold is swept too.
  explicit CacheEviction(int64_t bytes);
  // Reads and writes every line once.
  void Evict();

 private:
  std::vector<uint64_t> memory_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_CACHE_EVICTION_H_

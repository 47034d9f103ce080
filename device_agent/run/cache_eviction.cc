#include "device_agent/run/cache_eviction.h"

#include <cstddef>

namespace regatta {
namespace {

// The shortest line of any processor of today.
constexpr size_t kLineBytes = 64;

}  // namespace

CacheEviction::CacheEviction(int64_t bytes)
    : memory_(static_cast<size_t>(bytes) / sizeof(uint64_t) + 1) {}

void CacheEviction::Evict() {
  volatile uint64_t* const memory = memory_.data();
  for (size_t i = 0; i < memory_.size(); i += kLineBytes / sizeof(uint64_t)) {
    memory[i] = memory[i] + 1;
  }
}

}  // namespace regatta

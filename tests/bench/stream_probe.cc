#include "tests/bench/stream_probe.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace regatta::bench {
namespace {

typedef uint64_t Vector __attribute__((vector_size(64)));
// Rows of a part of a tensor begin anywhere.
typedef uint64_t Unaligned __attribute__((vector_size(64), aligned(4)));
constexpr int64_t kUnroll = 4;
constexpr int64_t kStep = kUnroll * static_cast<int64_t>(sizeof(Vector));

#if defined(__x86_64__)
#define REGATTA_WIDEST \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define REGATTA_WIDEST
#endif

REGATTA_WIDEST void Copy(const char* source, char* target, int64_t bytes) {
  const auto* from = reinterpret_cast<const Unaligned*>(source);
  auto* to = reinterpret_cast<Unaligned*>(target);
  for (int64_t i = 0; i < bytes / 64; i += kUnroll) {
    Vector line[kUnroll];
    for (int64_t j = 0; j < kUnroll; ++j) line[j] = from[i + j];
    // Or it would become a call of memcpy.
    asm volatile("" : : : "memory");
    for (int64_t j = 0; j < kUnroll; ++j) to[i + j] = line[j];
  }
}

REGATTA_WIDEST void Read(const char* source, int64_t bytes) {
  const auto* from = reinterpret_cast<const Unaligned*>(source);
  Vector sums[kUnroll] = {};
  for (int64_t i = 0; i < bytes / 64; i += kUnroll) {
    for (int64_t j = 0; j < kUnroll; ++j) sums[j] ^= from[i + j];
  }
  asm volatile("" : : "r"(sums) : "memory");
}

REGATTA_WIDEST void Fill(char* target, int64_t bytes) {
  auto* to = reinterpret_cast<Unaligned*>(target);
  for (int64_t i = 0; i < bytes / 64; ++i) {
    to[i] = Vector{};
    asm volatile("" : : : "memory");
  }
}

// What is left of a list of stretches.
class Rest {
 public:
  explicit Rest(const std::vector<Stretch>& stretches) : list_(stretches) {
    Skip();
  }
  bool empty() const { return which_ == list_.size(); }
  char* data() const { return list_[which_].data + at_; }
  // Of the current stretch.
  int64_t bytes() const { return list_[which_].bytes / kStep * kStep - at_; }
  void Take(int64_t bytes) {
    at_ += bytes;
    Skip();
  }

 private:
  void Skip() {
    while (!empty() && bytes() == 0) {
      ++which_;
      at_ = 0;
    }
  }

  const std::vector<Stretch>& list_;
  size_t which_ = 0;
  int64_t at_ = 0;
};

}  // namespace

void Stream(const std::vector<Stretch>& reads,
            const std::vector<Stretch>& writes) {
  Rest from(reads), to(writes);
  while (!from.empty() || !to.empty()) {
    const int64_t bytes = from.empty() ? to.bytes()
                          : to.empty() ? from.bytes()
                                       : std::min(from.bytes(), to.bytes());
    if (from.empty()) {
      Fill(to.data(), bytes);
    } else if (to.empty()) {
      Read(from.data(), bytes);
    } else {
      Copy(from.data(), to.data(), bytes);
    }
    if (!from.empty()) from.Take(bytes);
    if (!to.empty()) to.Take(bytes);
  }
}

}  // namespace regatta::bench

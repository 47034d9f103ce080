// Takes times: warm-up, blocks of back-to-back calls, screening.
//
// The protocol (version kMeasureProtocol):
//  * Warm-up: at least 2 untimed calls and 5 ms of them, besides the verifying
//    call before; a single call suffices once 50 ms are spent.
//  * A block is as many calls as take 1 ms, at least one; a block that turns
//  out
//    shorter is repeated with more calls. Interleaved blocks take 2 ms and
//    begin with one untimed call, since another process had the caches; not
//    where a call takes 100 ms, beside which filling the caches is nothing.
//  * Screening takes 5 blocks but no more than 50 ms: fewer for slow kernels,
//  at
//    least 3 where a call takes less than 100 ms and 1 where it takes more.
//    When after 2 blocks (1 once half of the 50 ms is spent) the faster one is
//    slower than three times the incumbent, it ends as abandoned.
//  * Cold: the caches are evicted before every call, and each call is timed
//    singly; a block then holds at most 4 calls, because eviction takes longer
//    than they do.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_BLOCK_TIMER_H_
#define REGATTA_DEVICE_AGENT_RUN_BLOCK_TIMER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace regatta {

struct TimedBlock {
  int64_t calls = 0;
  int64_t elapsed_ns = 0;
  double PerCall() const {
    return static_cast<double>(elapsed_ns) / static_cast<double>(calls);
  }
};

class BlockTimer {
 public:
  static constexpr int64_t kBlockNs = 1'000'000;
  static constexpr int64_t kInterleavedBlockNs = 2'000'000;
  static constexpr int64_t kScreeningNs = 50'000'000;
  static constexpr int64_t kSlowCallNs = 100'000'000;
  static constexpr int kScreeningBlocks = 5;
  static constexpr int kMinBlocks = 3;
  static constexpr int kColdCalls = 4;
  static constexpr double kAbandonFactor = 3;
  static constexpr int64_t kWarmUpNs = 5'000'000;
  static constexpr int kWarmUpCalls = 2;

  // The nanoseconds of so many calls back to back; absent: one failed.
  using TimeCalls = std::function<std::optional<int64_t>(int64_t calls)>;
  // False: it failed.
  using Evict = std::function<bool()>;

  // `evict` is null for warm timing. REQUIRES: `clock` outlives this; it only
  // says how long warming up lasts.
  BlockTimer(const Clock& clock, TimeCalls time_calls, Evict evict);

  // Before anything else. Everything returns early once a call has failed.
  void WarmUp();
  TimedBlock Time(int64_t block_ns);
  TimedBlock TimeInterleaved();

  struct Screening {
    std::vector<TimedBlock> blocks;
    bool abandoned = false;
  };
  // `incumbent_ns` 0: there is none to be slower than.
  Screening Screen(int64_t incumbent_ns);

  bool failed() const { return failed_; }

 private:
  // One timed stretch.
  TimedBlock Measure(int64_t calls);

  const Clock& clock_;
  const TimeCalls time_calls_;
  const Evict evict_;
  double call_ns_ = 0;  // expected, from the fastest seen so far
  bool failed_ = false;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_BLOCK_TIMER_H_

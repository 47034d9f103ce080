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

  // `call` returns 0 or an error code. `evict` is null for warm timing.
  // REQUIRES: `clock` outlives this.
  BlockTimer(const Clock& clock, std::function<int()> call,
             std::function<void()> evict);

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

  // What the first failed call returned; 0: none failed.
  int error() const { return error_; }

 private:
  // One timed stretch.
  TimedBlock Measure(int64_t calls);
  bool Call();

  const Clock& clock_;
  const std::function<int()> call_;
  const std::function<void()> evict_;
  double call_ns_ = 0;  // expected, from the fastest seen so far
  int error_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_BLOCK_TIMER_H_

// The measuring protocol on a clock that only the kernel moves.
#include "device_agent/run/block_timer.h"

#include "gtest/gtest.h"

namespace regatta {
namespace {

class BlockTimerTest : public ::testing::Test {
 protected:
  // A kernel that takes `call_ns` per call.
  BlockTimer Timer(int64_t call_ns, bool cold = false) {
    return BlockTimer(
        clock_,
        [this, call_ns](int64_t calls) -> std::optional<int64_t> {
          for (int64_t i = 0; i < calls; ++i) {
            clock_.Advance(absl::Nanoseconds(call_ns));
            if (++calls_ == failing_call_) return std::nullopt;
          }
          return calls * call_ns;
        },
        cold ? BlockTimer::Evict([this] {
          ++evictions_;
          clock_.Advance(absl::Milliseconds(6));
          return evictions_ != failing_eviction_;
        })
             : nullptr);
  }
  FakeClock clock_;
  int64_t calls_ = 0, evictions_ = 0, failing_call_ = 0, failing_eviction_ = 0;
};

TEST_F(BlockTimerTest, WarmUpTakesFiveMillisecondsOfAFastKernel) {
  BlockTimer timer = Timer(10'000);
  timer.WarmUp();
  EXPECT_EQ(calls_, 500);
}

TEST_F(BlockTimerTest, WarmUpTakesTwoCallsOfASlowKernelAndOneOfAVerySlowOne) {
  Timer(10'000'000).WarmUp();
  EXPECT_EQ(calls_, 2);
  calls_ = 0;
  Timer(60'000'000).WarmUp();
  EXPECT_EQ(calls_, 1);
}

TEST_F(BlockTimerTest, ScreeningTakesFiveBlocksOfAtLeastAMillisecond) {
  BlockTimer timer = Timer(10'000);
  timer.WarmUp();
  const BlockTimer::Screening screening = timer.Screen(0);
  EXPECT_FALSE(screening.abandoned);
  ASSERT_EQ(screening.blocks.size(), 5u);
  for (const TimedBlock& block : screening.blocks) {
    EXPECT_GE(block.elapsed_ns, 1'000'000);
    EXPECT_LE(block.elapsed_ns, 1'500'000);
    EXPECT_EQ(block.PerCall(), 10'000);
  }
}

TEST_F(BlockTimerTest, ScreeningOfSlowKernelsIsBoundedByTimeButKeepsABlock) {
  struct Row {
    int64_t call_ns;
    size_t blocks;
  };
  // 50 ms hold three calls of 15 ms; a call below 100 ms is timed three times
  // all the same; beyond that once.
  for (const Row& row : {Row{9'000'000, 5}, Row{15'000'000, 3},
                         Row{99'000'000, 3}, Row{101'000'000, 1}}) {
    BlockTimer timer = Timer(row.call_ns);
    timer.WarmUp();
    EXPECT_EQ(timer.Screen(0).blocks.size(), row.blocks) << row.call_ns;
  }
}

TEST_F(BlockTimerTest, PastThreeTimesTheIncumbentIsAbandonedAfterTwoBlocks) {
  BlockTimer timer = Timer(31'000);
  timer.WarmUp();
  const BlockTimer::Screening screening = timer.Screen(10'000);
  EXPECT_TRUE(screening.abandoned);
  EXPECT_EQ(screening.blocks.size(), 2u);
  BlockTimer just_within = Timer(30'000);
  just_within.WarmUp();
  EXPECT_FALSE(just_within.Screen(10'000).abandoned);
}

TEST_F(BlockTimerTest, AHopelesslySlowKernelIsAbandonedAfterOneBlock) {
  BlockTimer timer = Timer(40'000'000);
  timer.WarmUp();
  const BlockTimer::Screening screening = timer.Screen(1'000'000);
  EXPECT_TRUE(screening.abandoned);
  EXPECT_EQ(screening.blocks.size(), 1u);
}

TEST_F(BlockTimerTest, ABlockThatTurnsOutShortIsRepeatedLonger) {
  // The clock was disturbed during warm-up, so calls look ten times slower.
  int64_t call_ns = 100'000;
  BlockTimer timer(
      clock_,
      [&](int64_t calls) -> std::optional<int64_t> {
        clock_.Advance(absl::Nanoseconds(call_ns * calls));
        return call_ns * calls;
      },
      nullptr);
  timer.WarmUp();
  call_ns = 10'000;
  const TimedBlock block = timer.Time(BlockTimer::kBlockNs);
  EXPECT_GE(block.elapsed_ns, 1'000'000);
  EXPECT_EQ(block.PerCall(), 10'000);
}

TEST_F(BlockTimerTest, InterleavedBlocksTakeTwoMillisecondsAfterAnUntimedCall) {
  BlockTimer timer = Timer(10'000);
  timer.WarmUp();
  calls_ = 0;
  const TimedBlock block = timer.TimeInterleaved();
  EXPECT_GE(block.elapsed_ns, 2'000'000);
  EXPECT_EQ(calls_, block.calls + 1);
}

TEST_F(BlockTimerTest, AnInterleavedBlockOfASlowKernelIsOneCall) {
  BlockTimer timer = Timer(500'000'000);
  timer.WarmUp();
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(timer.TimeInterleaved().calls, 1);
  EXPECT_EQ(calls_, 2);
}

TEST_F(BlockTimerTest, ColdCallsAreEachEvictedForAndTheEvictionIsNotTimed) {
  BlockTimer timer = Timer(10'000, /*cold=*/true);
  timer.WarmUp();
  const int64_t calls_before = calls_, evictions_before = evictions_;
  const BlockTimer::Screening screening = timer.Screen(0);
  ASSERT_EQ(screening.blocks.size(), 5u);
  for (const TimedBlock& block : screening.blocks) {
    EXPECT_EQ(block.calls, 4);
    EXPECT_EQ(block.elapsed_ns, 40'000);
  }
  EXPECT_EQ(calls_ - calls_before, 20);
  EXPECT_EQ(evictions_ - evictions_before, 20);
}

TEST_F(BlockTimerTest, AFailedCallEndsEverything) {
  failing_call_ = 700;
  BlockTimer timer = Timer(10'000);
  timer.WarmUp();
  EXPECT_FALSE(timer.failed());
  timer.Screen(0);
  EXPECT_TRUE(timer.failed());
  EXPECT_EQ(calls_, 700);
  timer.TimeInterleaved();
  EXPECT_EQ(calls_, 700);
}

TEST_F(BlockTimerTest, AFailedEvictionEndsEverythingBeforeTheCall) {
  failing_eviction_ = 3;
  BlockTimer timer = Timer(10'000, /*cold=*/true);
  timer.WarmUp();
  EXPECT_FALSE(timer.failed());
  timer.Screen(0);
  EXPECT_TRUE(timer.failed());
  EXPECT_EQ(evictions_, 3);
  EXPECT_EQ(calls_, 2);
}

}  // namespace
}  // namespace regatta

#include "device_agent/run/block_timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace regatta {
namespace {

// Blocks are planned somewhat longer, since the expectation comes from the
// fastest call.
constexpr double kMargin = 1.2;
constexpr int kMaxRepeats = 4;

}  // namespace

BlockTimer::BlockTimer(const Clock& clock, std::function<int()> call,
                       std::function<void()> evict)
    : clock_(clock), call_(std::move(call)), evict_(std::move(evict)) {}

bool BlockTimer::Call() {
  if (error_ == 0) error_ = call_();
  return error_ == 0;
}

TimedBlock BlockTimer::Measure(int64_t calls) {
  TimedBlock block;
  block.calls = calls;
  if (evict_ == nullptr) {
    const SteadyTime start = clock_.Steady();
    for (int64_t i = 0; i < calls; ++i) {
      if (!Call()) return block;
    }
    block.elapsed_ns = clock_.Steady().ns - start.ns;
    return block;
  }
  for (int64_t i = 0; i < calls; ++i) {
    evict_();
    const SteadyTime start = clock_.Steady();
    if (!Call()) return block;
    block.elapsed_ns += clock_.Steady().ns - start.ns;
  }
  return block;
}

void BlockTimer::WarmUp() {
  int64_t spent = 0;
  for (int calls = 0; error_ == 0; ++calls) {
    const bool enough = calls >= kWarmUpCalls && spent >= kWarmUpNs;
    if (enough || (calls > 0 && spent >= kScreeningNs)) break;
    // Evictions are no warm-up but they do take time.
    const SteadyTime start = clock_.Steady();
    const TimedBlock block = Measure(1);
    spent += std::max<int64_t>(1, clock_.Steady().ns - start.ns);
    const double call_ns = std::max(1.0, block.PerCall());
    call_ns_ = call_ns_ == 0 ? call_ns : std::min(call_ns_, call_ns);
  }
}

TimedBlock BlockTimer::Time(int64_t block_ns) {
  const double wanted = static_cast<double>(block_ns);
  TimedBlock block;
  for (int repeat = 0; repeat <= kMaxRepeats && error_ == 0; ++repeat) {
    double calls = std::max(1.0, std::ceil(wanted * kMargin / call_ns_));
    if (call_ns_ >= wanted) calls = 1;
    if (evict_ != nullptr) calls = std::min<double>(calls, kColdCalls);
    block = Measure(static_cast<int64_t>(calls));
    if (block.elapsed_ns > 0) call_ns_ = std::min(call_ns_, block.PerCall());
    if (block.elapsed_ns >= block_ns || evict_ != nullptr) break;
  }
  return block;
}

TimedBlock BlockTimer::TimeInterleaved() {
  const bool slow = call_ns_ >= static_cast<double>(kSlowCallNs);
  if (!slow && !Call()) return {};
  return Time(kInterleavedBlockNs);
}

BlockTimer::Screening BlockTimer::Screen(int64_t incumbent_ns) {
  Screening screening;
  int64_t spent = 0;
  double fastest = 0;
  while (static_cast<int>(screening.blocks.size()) < kScreeningBlocks) {
    const TimedBlock block = Time(kBlockNs);
    if (error_ != 0) break;
    screening.blocks.push_back(block);
    spent += block.elapsed_ns;
    fastest = screening.blocks.size() == 1 ? block.PerCall()
                                           : std::min(fastest, block.PerCall());
    const int blocks = static_cast<int>(screening.blocks.size());
    const bool judged = blocks >= 2 || spent >= kScreeningNs / 2;
    if (judged && incumbent_ns > 0 &&
        fastest > kAbandonFactor * static_cast<double>(incumbent_ns)) {
      screening.abandoned = true;
      break;
    }
    const int at_least =
        fastest >= static_cast<double>(kSlowCallNs) ? 1 : kMinBlocks;
    if (blocks >= at_least && spent + block.elapsed_ns > kScreeningNs) break;
  }
  return screening;
}

}  // namespace regatta

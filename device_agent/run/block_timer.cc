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

BlockTimer::BlockTimer(const Clock& clock, TimeCalls time_calls, Evict evict)
    : clock_(clock),
      time_calls_(std::move(time_calls)),
      evict_(std::move(evict)) {}

TimedBlock BlockTimer::Measure(int64_t calls) {
  TimedBlock block;
  block.calls = calls;
  const int64_t at_once = evict_ == nullptr ? calls : 1;
  for (int64_t done = 0; done < calls && !failed_; done += at_once) {
    if (evict_ != nullptr && !evict_()) failed_ = true;
    const std::optional<int64_t> elapsed_ns =
        failed_ ? std::nullopt : time_calls_(at_once);
    failed_ = !elapsed_ns.has_value();
    block.elapsed_ns += elapsed_ns.value_or(0);
  }
  return block;
}

void BlockTimer::WarmUp() {
  int64_t spent = 0;
  for (int calls = 0; !failed_; ++calls) {
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
  for (int repeat = 0; repeat <= kMaxRepeats && !failed_; ++repeat) {
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
  if (failed_) return {};
  const bool slow = call_ns_ >= static_cast<double>(kSlowCallNs);
  if (!slow && !time_calls_(1).has_value()) {
    failed_ = true;
    return {};
  }
  return Time(kInterleavedBlockNs);
}

BlockTimer::Screening BlockTimer::Screen(int64_t incumbent_ns) {
  Screening screening;
  int64_t spent = 0;
  double fastest = 0;
  while (static_cast<int>(screening.blocks.size()) < kScreeningBlocks) {
    const TimedBlock block = Time(kBlockNs);
    if (failed_) break;
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

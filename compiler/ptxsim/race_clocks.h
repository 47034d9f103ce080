// What is ordered before what among the warps of a block: vector clocks that
// barriers join.
//
// Algorithm: Flanagan and Freund, "FastTrack: efficient and precise dynamic
// race detection", PLDI 2009, with a warp as the unit that has a clock. Lanes
// of one warp are ordered by bar.warp.sync, which advances the warp's clock;
// its mask is taken to be the whole warp.
#ifndef REGATTA_COMPILER_PTXSIM_RACE_CLOCKS_H_
#define REGATTA_COMPILER_PTXSIM_RACE_CLOCKS_H_

#include <array>
#include <cstdint>

namespace regatta::ptxsim {

inline constexpr int kMaxWarps = 32;

// Who accessed, where in the program and when: clock (32 bits), program counter
// (20), strong (1), thread of the block (10). 0: nobody.
using Stamp = uint64_t;

inline constexpr uint64_t kStampStrong = 1u << 10;
inline constexpr uint32_t kMaxProgramCounter = 1u << 20;
// The clock of a copy that has not arrived: later than everything.
inline constexpr uint32_t kPendingClock = ~0u;

constexpr Stamp MakeStamp(uint32_t clock, uint32_t pc, bool strong,
                          uint32_t thread) {
  return (uint64_t{clock} << 32) | (uint64_t{pc} << 11) |
         (strong ? kStampStrong : 0) | thread;
}
constexpr uint32_t StampClock(Stamp stamp) { return stamp >> 32; }
constexpr uint32_t StampPc(Stamp stamp) {
  return (stamp >> 11) & (kMaxProgramCounter - 1);
}
constexpr uint32_t StampThread(Stamp stamp) { return stamp & 1023; }

using Clock = std::array<uint32_t, kMaxWarps>;

class RaceClocks {
 public:
  // All warps at the start of a block: unordered.
  void Reset() {
    for (int warp = 0; warp < kMaxWarps; ++warp) {
      clocks_[warp].fill(0);
      clocks_[warp][warp] = 1;
    }
  }
  const Clock& Of(int warp) const { return clocks_[warp]; }
  uint32_t Now(int warp) const { return clocks_[warp][warp]; }
  // What came before is now ordered before what comes, within the warp.
  void Tick(int warp) { ++clocks_[warp][warp]; }

  static void Join(Clock& into, const Clock& from) {
    for (int i = 0; i < kMaxWarps; ++i) {
      if (from[i] > into[i]) into[i] = from[i];
    }
  }
  // `warp` learns of everything in `joined` and starts a new moment.
  void Acquire(int warp, const Clock& joined) {
    Join(clocks_[warp], joined);
    Tick(warp);
  }

  // Whether an access of the same block is ordered before the present moment of
  // `thread`. `now` is the clock of its warp.
  static bool Ordered(Stamp earlier, const Clock& now, uint32_t thread) {
    const uint32_t clock = StampClock(earlier);
    const uint32_t other = StampThread(earlier);
    const uint32_t warp = thread / 32;
    if (other / 32 != warp) return clock <= now[other / 32];
    if (other == thread) return clock != kPendingClock;
    return clock < now[warp];
  }

 private:
  std::array<Clock, kMaxWarps> clocks_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_RACE_CLOCKS_H_

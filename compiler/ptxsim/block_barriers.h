// The 16 barriers of a block. Warps count, not threads, as in the hardware.
#ifndef REGATTA_COMPILER_PTXSIM_BLOCK_BARRIERS_H_
#define REGATTA_COMPILER_PTXSIM_BLOCK_BARRIERS_H_

#include <array>
#include <cstdint>

#include "compiler/ptxsim/race_clocks.h"

namespace regatta::ptxsim {

class BlockBarriers {
 public:
  static constexpr int kCount = 16;

  struct Barrier {
    uint32_t waiting = 0;  // warps
    int arrived = 0;       // warps, those that did not stop included
    int expected = 0;      // warps; 0: all that are still in the kernel
    Clock joined = {};     // what the arrived warps know
    // Of .red, over the threads.
    uint32_t ones = 0;
    bool all = true;
  };

  void Reset() { barriers_.fill({}); }

  void Arrive(int barrier, int warp, bool waits, int expected,
              const Clock& clock) {
    Barrier& b = barriers_[barrier];
    b.expected = expected;
    ++b.arrived;
    if (waits) b.waiting |= 1u << warp;
    RaceClocks::Join(b.joined, clock);
  }
  void Vote(int barrier, uint32_t ones, bool all) {
    barriers_[barrier].ones += ones;
    barriers_[barrier].all &= all;
  }
  // Whether everybody is there, when `live` warps are still in the kernel.
  bool Complete(int barrier, int live) const {
    const Barrier& b = barriers_[barrier];
    return b.arrived > 0 && b.arrived >= (b.expected > 0 ? b.expected : live);
  }
  // What the barrier held; it is empty afterwards.
  Barrier Take(int barrier) {
    const Barrier taken = barriers_[barrier];
    barriers_[barrier] = {};
    return taken;
  }
  const Barrier& Of(int barrier) const { return barriers_[barrier]; }

 private:
  std::array<Barrier, kCount> barriers_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_BLOCK_BARRIERS_H_

// Where the lanes of a warp are: the group that runs and those that wait for
// their turn or for other lanes.
//
// The group at the lowest instruction runs, which brings lanes together again
// behind the code that they diverged over. Source: Collange, "Stack-less SIMT
// reconvergence at low cost", 2011 (minimum program counter first).
#ifndef REGATTA_COMPILER_PTXSIM_LANE_GROUPS_H_
#define REGATTA_COMPILER_PTXSIM_LANE_GROUPS_H_

#include <cstdint>

namespace regatta::ptxsim {

class LaneGroups {
 public:
  static constexpr uint32_t kNone = ~0u;

  // `lanes` start at instruction 0.
  void Reset(uint32_t lanes) {
    count_ = 0;
    pc = 0;
    active = lanes;
    next_pc = kNone;
  }

  // The running group splits off `lanes`, which go to `at`.
  void Split(uint32_t lanes, uint32_t at) {
    active &= ~lanes;
    Add(at, lanes, false);
  }

  // The running group stops until others join it at its instruction. False when
  // no group is left that can run.
  bool Wait() {
    Add(pc, active, true);
    active = 0;
    return Pick();
  }

  // To be called when pc >= next_pc, or when the running group has no lanes:
  // joins groups that have met and runs the lowest. False when none can run.
  bool Regroup() {
    if (active != 0) Add(pc, active, false);
    active = 0;
    return Pick();
  }

  bool Empty() const { return active == 0 && count_ == 0; }
  // The instruction of some waiting group. REQUIRES: one waits.
  uint32_t SomeWaiting(uint32_t& lanes) const {
    lanes = groups_[0].lanes;
    return groups_[0].pc;
  }

  // The running group, and the lowest instruction of a group that could run
  // instead.
  uint32_t pc = 0;
  uint32_t active = 0;
  uint32_t next_pc = kNone;

 private:
  struct Group {
    uint32_t pc;
    uint32_t lanes;
    bool waiting;
  };

  void Add(uint32_t at, uint32_t lanes, bool waiting) {
    for (int i = 0; i < count_; ++i) {
      if (groups_[i].pc != at) continue;
      // Newcomers may be those that the others wait for.
      groups_[i].lanes |= lanes;
      groups_[i].waiting = false;
      return Update();
    }
    groups_[count_++] = {at, lanes, waiting};
    Update();
  }

  void Update() {
    next_pc = kNone;
    for (int i = 0; i < count_; ++i) {
      if (!groups_[i].waiting && groups_[i].pc < next_pc) {
        next_pc = groups_[i].pc;
      }
    }
  }

  bool Pick() {
    if (next_pc == kNone) return false;
    for (int i = 0; i < count_; ++i) {
      if (groups_[i].waiting || groups_[i].pc != next_pc) continue;
      pc = groups_[i].pc;
      active = groups_[i].lanes;
      groups_[i] = groups_[--count_];
      break;
    }
    Update();
    return true;
  }

  Group groups_[33];
  int count_ = 0;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_LANE_GROUPS_H_

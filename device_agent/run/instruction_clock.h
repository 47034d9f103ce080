// Time as a count of executed instructions: the clock of a simulated board, the
// same at every repetition. An emulator's plugin counts
// (emulator/instruction_count.c, which describes the channel).
#ifndef REGATTA_DEVICE_AGENT_RUN_INSTRUCTION_CLOCK_H_
#define REGATTA_DEVICE_AGENT_RUN_INSTRUCTION_CLOCK_H_

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace regatta {

class InstructionClock : public Clock {
 public:
  // This process's, kept until its end; null where nobody counts. Whoever calls
  // it first decides, so call it before code that is not ours is loaded.
  static const InstructionClock* Find();

  absl::Time Wall() const override { return RealClock().Wall(); }
  SteadyTime Steady() const override;
  // "instructions of 1000 ps".
  std::string Describe() const;

 private:
  struct Channel {
    volatile uint64_t instructions;
    uint64_t picoseconds;
  };
  explicit InstructionClock(const Channel* channel) : channel_(channel) {}
  static const InstructionClock* Open();

  const Channel* const channel_;
};

// What calls are timed by: instructions where they are counted, else the
// machine's clock.
const Clock& CallClock();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_INSTRUCTION_CLOCK_H_

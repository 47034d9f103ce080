// Where a program waits for its loads.
#ifndef REGATTA_COMPILER_PTXSIM_LATENCY_POINTS_H_
#define REGATTA_COMPILER_PTXSIM_LATENCY_POINTS_H_

#include "compiler/ptxsim/program.h"

namespace regatta::ptxsim {

// Sets Instruction::fill: the instruction that is the first, in the order of
// the text, to name a register that a load before it brings. Loads in a row are
// under way together, so one wait is for all that were started; what a loop
// uses before it loads anew (a prefetched register) is no wait.
void MarkLatencyPoints(Program& program);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_LATENCY_POINTS_H_

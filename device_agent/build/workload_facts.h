// What a board must know of a workload to judge its results and times.
// Pure functions.
#ifndef REGATTA_DEVICE_AGENT_BUILD_WORKLOAD_FACTS_H_
#define REGATTA_DEVICE_AGENT_BUILD_WORKLOAD_FACTS_H_

#include <cstdint>

#include "compiler/expr/expr.h"

namespace regatta {

// Terms behind one element of the output that has most: those of its own
// reduction and of the longest chain of reductions that it reads. At least 1.
int64_t ReductionLength(const Workload& workload);

// Every tensor is f32.
bool AllF32(const Workload& workload);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_BUILD_WORKLOAD_FACTS_H_

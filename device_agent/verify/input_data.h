// The inputs of trials: numbers that any process can make again from a seed.
//
// Element e of input t is a hash of (seed, t, e), so that the interpreter,
// which needs few elements, and a run worker, which needs all, agree. Floats
// are uniform in [-1, 1), short enough in binary to be exact in their type;
// integers are uniform in [-8, 7], so that sums of products are exact.
//
// Pure functions.
#ifndef REGATTA_DEVICE_AGENT_VERIFY_INPUT_DATA_H_
#define REGATTA_DEVICE_AGENT_VERIFY_INPUT_DATA_H_

#include <cstdint>
#include <vector>

#include "compiler/module/dtype.h"

namespace regatta {

// REQUIRES: `type` is one that a workload's tensor may have.
double InputValue(uint64_t seed, int tensor, int64_t element, DType type);

// All elements, as a kernel reads them. REQUIRES: room for them at `memory`.
void FillInput(uint64_t seed, int tensor, int64_t elements, DType type,
               void* memory);

std::vector<double> InputValues(uint64_t seed, int tensor, int64_t elements,
                                DType type);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_VERIFY_INPUT_DATA_H_

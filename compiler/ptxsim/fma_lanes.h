// Fused multiply-add over a warp's lanes, with the host's instruction where it
// has one: the hot loop of every fp32 kernel.
#ifndef REGATTA_COMPILER_PTXSIM_FMA_LANES_H_
#define REGATTA_COMPILER_PTXSIM_FMA_LANES_H_

#include <cstdint>

namespace regatta::ptxsim {

// out[i] = a[i] * b[i] + c[i], rounded once, over 32 floats given as bits.
// `out` overlaps none of the others.
void FmaLanes(const uint32_t* a, const uint32_t* b, const uint32_t* c,
              uint32_t* out);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_FMA_LANES_H_

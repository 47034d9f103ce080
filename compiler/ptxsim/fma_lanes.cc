#include "compiler/ptxsim/fma_lanes.h"

#include <bit>
#include <cmath>

#include "compiler/ptxsim/program.h"

// Two versions, chosen when the program is loaded; both round the same way.
#if defined(__x86_64__)
#define REGATTA_FMA_CLONES \
  __attribute__((target_clones("arch=haswell,default")))
#else
#define REGATTA_FMA_CLONES
#endif

namespace regatta::ptxsim {

REGATTA_FMA_CLONES
void FmaLanes(const uint32_t* __restrict a, const uint32_t* __restrict b,
              const uint32_t* __restrict c, uint32_t* __restrict out) {
  for (int lane = 0; lane < kLanes; ++lane) {
    out[lane] = std::bit_cast<uint32_t>(__builtin_fmaf(
        std::bit_cast<float>(a[lane]), std::bit_cast<float>(b[lane]),
        std::bit_cast<float>(c[lane])));
  }
}

}  // namespace regatta::ptxsim

// The loops that measure a core: dependent loads, streaming reads, fused
// multiply-adds. They run on the calling thread, which the caller has pinned
// and given the core to itself.
//
// Thread safety: free functions and distinct objects may be used at once, but
// then measure each other.
#ifndef REGATTA_DEVICE_AGENT_PROBE_KERNELS_H_
#define REGATTA_DEVICE_AGENT_PROBE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/random.h"

namespace regatta {

// Memory, zeroed and touched, in huge pages where the system has them.
class ProbeMemory {
 public:
  // Null when the system gives none.
  static std::unique_ptr<ProbeMemory> Allocate(int64_t bytes);
  ~ProbeMemory();
  ProbeMemory(const ProbeMemory&) = delete;
  ProbeMemory& operator=(const ProbeMemory&) = delete;
  char* data() { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  ProbeMemory(char* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  char* const data_;
  const int64_t bytes_;
};

// Time of one load that depends on the one before, in nanoseconds, over a
// random cycle through all cache lines of the first `bytes`: the least of a few
// tries. REQUIRES: 4096 <= bytes <= memory.bytes().
double LoadLatencyNs(ProbeMemory& memory, int64_t bytes, Random& random);

// Bytes per second of reading the first `bytes` from front to back: the best of
// `passes`.
double ReadBandwidth(ProbeMemory& memory, int64_t bytes, int passes,
                     const Clock& clock = RealClock());

// The widest multiply-add kernel that this processor has: f32, independent
// accumulators in registers.
struct FmaKernel {
  const char* name;            // "avx512f"
  double flops_per_iteration;  // two per element and multiply-add
  void (*run)(int64_t iterations);
};
FmaKernel BestFmaKernel();

// Nanoseconds of `kernel.run(iterations)`.
int64_t TimeFma(const FmaKernel& kernel, int64_t iterations,
                const Clock& clock = RealClock());

// Iterations that take about this long now.
int64_t CalibrateFma(const FmaKernel& kernel, int64_t target_ns,
                     const Clock& clock = RealClock());

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_KERNELS_H_

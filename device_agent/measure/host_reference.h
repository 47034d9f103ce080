// The reference kernel of the host's processors (measuring_session.h): the
// multiply-adds in registers by which the noise floor is found. Its time says
// how fast a core is now, whatever is in caches and memory.
//
// Not thread-safe: one per timing thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_HOST_REFERENCE_H_
#define REGATTA_DEVICE_AGENT_MEASURE_HOST_REFERENCE_H_

#include <cstdint>
#include <optional>

#include "device_agent/probe/kernels.h"

namespace regatta {

class HostReference {
 public:
  static constexpr int64_t kBlockNs = 1'000'000;
  static constexpr int kBlocks = 6;

  explicit HostReference(int cpu) : cpu_(cpu), kernel_(BestFmaKernel()) {}

  // Nanoseconds of one block now: the least of kBlocks after one to warm up, so
  // that what interrupts some of them does not show. The same work every time.
  // Takes about 7 ms on a thread of its own, pinned to the core; absent where
  // it cannot be.
  std::optional<double> Time();

 private:
  const int cpu_;
  const FmaKernel kernel_;
  int64_t iterations_ = 0;  // of a block; 0: not calibrated yet
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_HOST_REFERENCE_H_

// A fixed set of kernels, each on a CUDA device and in the PTX simulator: the
// same bits, and the device's time beside the model's.
#ifndef REGATTA_TESTS_BENCH_GPU_BITS_H_
#define REGATTA_TESTS_BENCH_GPU_BITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/target/target.h"
#include "tests/support/simulated_module.h"

namespace regatta::bench {

enum class Verdict {
  kEqual,    // every bit
  kNear,     // differs by rounding, in code that approximates functions
  kDiffers,  // in anything else
  kFailed,   // did not run on the device, or not in the simulator
  kRefused,  // the compiler takes no such code (registers)
};
std::string_view VerdictName(Verdict verdict);

struct KernelCheck {
  std::string name;  // of the module: what its kernels' names begin with
  std::string workload;
  std::string schedule;
  Verdict verdict = Verdict::kFailed;
  std::string detail;
  bool approximates = false;  // exp and the like, by the device's own units
  int64_t elements = 0;       // of outputs
  int64_t differing = 0;      // of them, in some bit
  double largest = 0;         // difference, relative above 1
  double device_ns = 0;       // of a call, by the device's events; 0: none
  std::vector<testing::SimulatedKernel> kernels;
};

// The workloads; `small` ones take the simulated device some seconds together.
std::vector<std::string> CheckedWorkloads(bool small);

// Default schedule, seeds and a random one of each workload, `schedules` of
// them. After a kernel that fails on the device nothing more is run on it. With
// `once`, kernels run once, for a profiler, and the simulator is not used.
std::vector<KernelCheck> CheckKernels(const std::vector<std::string>& workloads,
                                      const Target& target, int schedules,
                                      bool once);

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_GPU_BITS_H_

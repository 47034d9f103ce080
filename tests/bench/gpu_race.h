// Kernels as `regatta compile` delivers them, beside NVIDIA's libraries on the
// same GPU, the same buffers, in turns.
#ifndef REGATTA_TESTS_BENCH_GPU_RACE_H_
#define REGATTA_TESTS_BENCH_GPU_RACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace regatta::bench {

struct Contestant {
  std::string name;
  double ns = 0;  // of a call: the median of the rounds, by the GPU's events
};

struct GpuRace {
  std::string workload;
  double flops = 0;                     // of a call
  std::vector<Contestant> contestants;  // the peer last
  // Between the default's output and the peer's, relative to the greatest.
  double largest_difference = 0;
};

struct RaceOptions {
  Target target;
  std::string
      schedule;  // tuned for another size, perhaps: carried over; "": none
  std::string folder;  // for what is compiled
  int rounds = 21;
};

// f16, `size` in every dimension, beside cuBLAS.
absl::StatusOr<GpuRace> RaceMatmul(int size, const RaceOptions& options);
// f16, 3x3, 16 images of 56x56x64, beside cuDNN.
absl::StatusOr<GpuRace> RaceConvolution(const RaceOptions& options);

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_GPU_RACE_H_

#include "compiler/ptxsim/gpu_architecture.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace regatta::ptxsim {

// Not from a source: l2_bytes everywhere, and the latencies, which are typical
// values of published micro-benchmarks. matrix_macs of sm_90 and sm_100 are
// those of mma.sync, about half of what wgmma and tcgen05 reach there.
const std::vector<GpuArchitecture>& AllGpuArchitectures() {
  static const auto* const kTable = new std::vector<GpuArchitecture>{
      {.sm = 75,
       .max_warps = 32,
       .max_blocks = 16,
       .shared_bytes = 64 << 10,
       .max_shared_per_block = 64 << 10,
       .shared_granule = 256,
       .float32_lanes = 64,
       .float64_lanes = 2,
       .float16_lanes = 64,
       .integer_lanes = 64,
       .matrix_macs_f16 = 512,
       .matrix_macs_int8 = 1024,
       .matrix_macs_tf32 = 0,
       .global_latency = 430,
       .shared_latency = 22},
      {.sm = 80,
       .max_warps = 64,
       .max_blocks = 32,
       .shared_bytes = 164 << 10,
       .max_shared_per_block = 163 << 10,
       .reserved_shared_per_block = 1 << 10,
       .float32_lanes = 64,
       .float64_lanes = 32,
       .float16_lanes = 128,
       .integer_lanes = 64,
       .matrix_macs_f16 = 1024,
       .matrix_macs_int8 = 2048,
       .matrix_macs_tf32 = 512,
       .global_latency = 450,
       .shared_latency = 23},
      {.sm = 86,
       .max_warps = 48,
       .max_blocks = 16,
       .shared_bytes = 100 << 10,
       .max_shared_per_block = 99 << 10,
       .reserved_shared_per_block = 1 << 10,
       .float32_lanes = 128,
       .float64_lanes = 2,
       .float16_lanes = 128,
       .integer_lanes = 64,
       .matrix_macs_f16 = 512,
       .matrix_macs_int8 = 1024,
       .matrix_macs_tf32 = 256,
       .global_latency = 450,
       .shared_latency = 23},
      {.sm = 87,
       .max_warps = 48,
       .max_blocks = 16,
       .shared_bytes = 164 << 10,
       .max_shared_per_block = 163 << 10,
       .reserved_shared_per_block = 1 << 10,
       .float32_lanes = 128,
       .float64_lanes = 2,
       .float16_lanes = 128,
       .integer_lanes = 64,
       .matrix_macs_f16 = 1024,
       .matrix_macs_int8 = 2048,
       .matrix_macs_tf32 = 512,
       .global_latency = 500,
       .shared_latency = 23},
      {.sm = 89,
       .max_warps = 48,
       .max_blocks = 24,
       .shared_bytes = 100 << 10,
       .max_shared_per_block = 99 << 10,
       .reserved_shared_per_block = 1 << 10,
       .float32_lanes = 128,
       .float64_lanes = 2,
       .float16_lanes = 128,
       .integer_lanes = 64,
       .matrix_macs_f16 = 512,
       .matrix_macs_int8 = 1024,
       .matrix_macs_tf32 = 256,
       .global_latency = 500,
       .shared_latency = 23},
      {.sm = 90,
       .max_warps = 64,
       .max_blocks = 32,
       .shared_bytes = 228 << 10,
       .max_shared_per_block = 227 << 10,
       .reserved_shared_per_block = 1 << 10,
       .float32_lanes = 128,
       .float64_lanes = 64,
       .float16_lanes = 256,
       .integer_lanes = 64,
       .matrix_macs_f16 = 1024,
       .matrix_macs_int8 = 2048,
       .matrix_macs_tf32 = 512,
       .global_latency = 480,
       .shared_latency = 23},
      {.sm = 100,
       .max_warps = 64,
       .max_blocks = 32,
       .shared_bytes = 228 << 10,
       .max_shared_per_block = 227 << 10,
       .reserved_shared_per_block = 1 << 10,
       .float32_lanes = 128,
       .float64_lanes = 64,
       .float16_lanes = 256,
       .integer_lanes = 64,
       .matrix_macs_f16 = 1024,
       .matrix_macs_int8 = 2048,
       .matrix_macs_tf32 = 512,
       .global_latency = 500,
       .shared_latency = 23},
  };
  return *kTable;
}

absl::StatusOr<GpuArchitecture> FindGpuArchitecture(int sm) {
  std::string known;
  for (const GpuArchitecture& architecture : AllGpuArchitectures()) {
    if (architecture.sm == sm) return architecture;
    absl::StrAppend(&known, known.empty() ? "sm_" : ", sm_", architecture.sm);
  }
  return absl::NotFoundError(
      absl::StrCat("no simulated architecture sm_", sm, "; there are ", known));
}

}  // namespace regatta::ptxsim

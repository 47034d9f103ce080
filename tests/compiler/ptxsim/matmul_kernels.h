// CUDA sources of matrix products for tests: fp32 tiles, and tensor cores with
// cp.async, ldmatrix and XOR swizzle. No headers, as generated kernels have
// none.
#ifndef REGATTA_TESTS_COMPILER_PTXSIM_MATMUL_KERNELS_H_
#define REGATTA_TESTS_COMPILER_PTXSIM_MATMUL_KERNELS_H_

#include <string>

namespace regatta::ptxsim {

// C = A * B, row-major, 64 x 64 tiles, 16 x 16 threads; sizes are multiples of
// 64 and k of 16. Entry "matmul32" (A, B, C, m, n, k).
extern const char kFloatMatmul[];

// C = A * B with 16-bit inputs, row-major; `type` is "f16" or "bf16". Tiles of
// 64 x 64 x 32, four warps, three stages. Entry "matmul16" (A, B, C, m, n, k),
// grid (n / 64, m / 64), 128 threads, kMatmul16Shared bytes of dynamic shared
// memory. C is fp32. `split`: the blocks of grid.z share k and add up with
// atomics (C must hold zeros).
std::string Matmul16(const std::string& type, bool split = false);
inline constexpr int kMatmul16Shared = 3 * (64 * 32 + 32 * 64) * 2;

// C = A * transpose(B) with int8 inputs (both with k along rows), 64 x 64 x 64
// tiles, four warps, two stages. Entry "matmul8" (A, B, C, m, n, k); C is
// int32.
extern const char kInt8Matmul[];
inline constexpr int kInt8Shared = 2 * (64 + 64) * 64;

// For sm_75: m16n8k8 with plain shared memory. Entry "matmul75" (A, B, C, m, n,
// k): f16, one warp for a tile of 16 x 8; sizes are multiples of 16, 8, 8.
extern const char kTuringMatmul[];

// `source` with the one occurrence of `from` replaced, to plant a mistake.
std::string Planted(std::string source, const std::string& from,
                    const std::string& to);

}  // namespace regatta::ptxsim

#endif  // REGATTA_TESTS_COMPILER_PTXSIM_MATMUL_KERNELS_H_

// Cubins of every architecture that the notes of the format cover.
#include "compiler/ptxsim/cubin.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/compiler/ptxsim/matmul_kernels.h"
#include "tests/compiler/ptxsim/nvrtc.h"
#include "tests/support/scale.h"

namespace regatta::ptxsim {
namespace {

// Kernels whose resources are known from their source.
constexpr char kKernels[] = R"(
extern "C" __global__ void __launch_bounds__(256) shared_kernel(float* a) {
  __shared__ float s[300];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[299 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(64, 2) products(const float* a,
                                                            float* o) {
  float x = a[threadIdx.x], s = 0.5f;
#pragma unroll
  for (int i = 0; i < 100; ++i) s = s * x + (float)(i * i + 1);
  o[threadIdx.x] = s;
}
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* a, int n) {
  float r[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) r[i] = a[i * n + threadIdx.x];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 64; ++i) r[i] = r[(i + 1) & 63] * r[i] + k;
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) a[i * n + threadIdx.x] = r[i];
}
)";

TEST(CubinTest, ReadsWhatEveryArchitectureWrites) {
  SKIP_WITHOUT_NVRTC();
  for (const int sm : {75, 80, 86, 87, 89, 90, 100}) {
    SCOPED_TRACE(sm);
    const auto compiled = CompileCuda(kKernels, "sm_" + std::to_string(sm));
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const auto cubin = ReadCubin(compiled->cubin);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_EQ(cubin->sm, sm);
    ASSERT_EQ(cubin->kernels.size(), 3u);
    const CubinKernel* shared = cubin->Find("shared_kernel");
    ASSERT_NE(shared, nullptr);
    EXPECT_EQ(shared->static_shared_bytes, 1200u);
    EXPECT_EQ(shared->max_threads, 256u);
    EXPECT_EQ(shared->frame_bytes, 0u);
    EXPECT_GE(shared->registers, 6);
    EXPECT_LE(shared->registers, 32);
    EXPECT_EQ(shared->Count(SassOpcode::kSts), 1u);
    EXPECT_EQ(shared->Count(SassOpcode::kLds), 1u);
    EXPECT_EQ(shared->Count(SassOpcode::kLdg), 1u);
    EXPECT_EQ(shared->Count(SassOpcode::kStg), 1u);
    EXPECT_EQ(shared->Count(SassOpcode::kBar), 1u);
    EXPECT_FALSE(shared->UsesLocalMemory());
    const CubinKernel* products = cubin->Find("products");
    ASSERT_NE(products, nullptr);
    EXPECT_EQ(products->Count(SassOpcode::kFfma), 100u);
    EXPECT_EQ(products->static_shared_bytes, 0u);
    EXPECT_EQ(products->max_threads, 64u);
    // 1024 threads twice over 65536 registers leave 32 for 64 values.
    const CubinKernel* spilling = cubin->Find("spilling");
    ASSERT_NE(spilling, nullptr);
    EXPECT_LE(spilling->registers, 64);
    EXPECT_GT(spilling->frame_bytes, 0u);
    EXPECT_EQ(spilling->min_stack_bytes, spilling->frame_bytes);
    EXPECT_TRUE(spilling->UsesLocalMemory());
    EXPECT_EQ(cubin->Find("nobody"), nullptr);
  }
}

TEST(CubinTest, CountsTensorInstructions) {
  SKIP_WITHOUT_NVRTC();
  const auto compiled = CompileCuda(Matmul16("f16"), "sm_80");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto cubin = ReadCubin(compiled->cubin);
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const CubinKernel* kernel = cubin->Find("matmul16");
  ASSERT_NE(kernel, nullptr);
  // The source's loop body: two steps of k with 2 x 4 products, 2 + 2 ldmatrix;
  // copies in the prologue (2 stages) and the loop, 4 each.
  EXPECT_EQ(kernel->Count(SassOpcode::kHmma), 16u);
  EXPECT_EQ(kernel->Count(SassOpcode::kLdsm), 8u);
  EXPECT_EQ(kernel->Count(SassOpcode::kLdgsts), 12u);
  EXPECT_GT(kernel->registers, 32 + 16);
}

TEST(CubinTest, GarbageIsRefusedAndDoesNoHarm) {
  EXPECT_EQ(ReadCubin("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadCubin(std::string(1000, '\x7f')).status().code(),
            absl::StatusCode::kInvalidArgument);
  SKIP_WITHOUT_NVRTC();
  const auto compiled = CompileCuda(kTuringMatmul, "sm_75");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Random random(4);
  int refused = 0;
  const int count = Scaled(3000);
  for (int i = 0; i < count; ++i) {
    std::string bytes = compiled->cubin;
    const int changes = 1 + static_cast<int>(random.Below(8));
    for (int k = 0; k < changes; ++k) {
      // Mostly where the structure is: the header and the section table.
      const size_t at = random.Below(2) == 0
                            ? random.Below(64)
                            : bytes.size() - 1 - random.Below(3000);
      bytes[at] = static_cast<char>(random.Next());
    }
    if (random.Below(4) == 0) bytes.resize(random.Below(bytes.size()));
    if (!ReadCubin(bytes).ok()) ++refused;
  }
  EXPECT_GT(refused, count / 10);
}

}  // namespace
}  // namespace regatta::ptxsim

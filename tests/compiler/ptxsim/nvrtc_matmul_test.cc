// Matrix products, reductions and transposes as NVRTC compiles them: exact on
// small integers, counters as theory says, planted mistakes found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/random.h"
#include "compiler/module/half.h"
#include "tests/compiler/ptxsim/kernel_launch.h"
#include "tests/compiler/ptxsim/matmul_kernels.h"

namespace regatta::ptxsim {
namespace {

using ::testing::HasSubstr;

struct Problem {
  int m = 128, n = 128, k = 128;
  std::vector<int> a, b;  // m x k and k x n

  explicit Problem(int m_, int n_, int k_) : m(m_), n(n_), k(k_) {
    Random random(7);
    for (int i = 0; i < m * k; ++i) a.push_back(int(random.Below(9)) - 4);
    for (int i = 0; i < k * n; ++i) b.push_back(int(random.Below(9)) - 4);
  }
  std::vector<int> Product() const {
    std::vector<int> c(m * n);
    for (int i = 0; i < m; ++i) {
      for (int x = 0; x < k; ++x) {
        for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + x] * b[x * n + j];
      }
    }
    return c;
  }
};

template <typename T>
std::vector<T> Encode(const std::vector<int>& values,
                      const std::function<T(int)>& encode) {
  std::vector<T> out;
  for (int value : values) out.push_back(encode(value));
  return out;
}

// Launches and compares C with the product; gives the report.
template <typename In, typename Out>
absl::StatusOr<LaunchReport> RunProduct(const PtxModule& module,
                                        const Problem& p, Launch launch,
                                        const std::function<In(int)>& encode,
                                        bool b_transposed = false) {
  TestMemory memory;
  std::vector<int> b = p.b;
  if (b_transposed) {
    for (int x = 0; x < p.k; ++x) {
      for (int j = 0; j < p.n; ++j) b[j * p.k + x] = p.b[x * p.n + j];
    }
  }
  const uint64_t c = memory.Put(std::vector<Out>(p.m * p.n));
  launch.arguments = {memory.Put(Encode<In>(p.a, encode)),
                      memory.Put(Encode<In>(b, encode)),
                      c,
                      p.m,
                      p.n,
                      p.k};
  auto report = RunKernel(module, launch, memory.memory());
  if (!report.ok() || report->fault.has_value()) return report;
  const auto have = memory.Get<Out>(c, p.m * p.n);
  const auto want = p.Product();
  for (int i = 0; i < p.m * p.n; ++i) {
    if (have[i] == static_cast<Out>(want[i])) continue;
    return absl::DataLossError("wrong product");
  }
  return report;
}

uint16_t Half(int value) { return DoubleToF16Bits(value); }
uint16_t BFloat(int value) { return DoubleToBF16Bits(value); }

Launch Launch16(const Problem& p, uint32_t splits = 1) {
  return {.entry = "matmul16",
          .grid = {uint32_t(p.n / 64), uint32_t(p.m / 64), splits},
          .group = {128, 1, 1},
          .dynamic_shared_bytes = kMatmul16Shared};
}

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * now.tv_nsec;
}

// What tuning on the simulated board rests on. By the thread's processor time,
// so that a busy machine does not count.
TEST(NvrtcMatmulTest, A256CubedProductTakesUnderHalfASecond) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(256, 256, 256);
  const PtxModule module = CompileModule(Matmul16("f16"), "compute_80");
  TestMemory memory;
  Launch launch = Launch16(p);
  launch.arguments = {memory.Put(Encode<uint16_t>(p.a, Half)),
                      memory.Put(Encode<uint16_t>(p.b, Half)),
                      memory.Put(std::vector<float>(p.m * p.n)),
                      p.m,
                      p.n,
                      p.k};
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = ProcessorSeconds();
    const LaunchReport report = RunClean(module, launch, memory);
    best = std::min(best, ProcessorSeconds() - start);
    EXPECT_EQ(report.counters.matrix_macs_f16, 256u * 256 * 256);
  }
  std::printf("256 x 256 x 256 by mma, f16: %.3f s of one processor\n", best);
  EXPECT_LT(best, 0.5);
}

TEST(NvrtcMatmulTest, FloatTiles) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(128, 64, 96);
  for (const char* architecture : {"compute_75", "compute_90", "compute_100"}) {
    const PtxModule module = CompileModule(kFloatMatmul, architecture);
    const auto report = RunProduct<float, float>(
        module, p,
        {.entry = "matmul32", .grid = {1, 2, 1}, .group = {256, 1, 1}},
        [](int x) { return float(x); });
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_FALSE(report->fault.has_value()) << report->fault->ToString();
    const Counters& counters = report->counters;
    EXPECT_EQ(counters.thread_fmas, 128u * 64 * 96);
    EXPECT_EQ(counters.barriers, 2u * 2 * 96 / 16);
    // Every element of C once, in 32-byte sectors.
    EXPECT_EQ(counters.global_store_sectors, 128u * 64 / 8);
    EXPECT_EQ(counters.footprint_load_sectors, (128u * 96 + 96 * 64) / 8);
  }
}

TEST(NvrtcMatmulTest, TensorCoresWithHalves) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(128, 192, 160);
  for (const char* architecture : {"compute_80", "compute_90", "compute_100"}) {
    for (const std::string type : {"f16", "bf16"}) {
      const PtxModule module = CompileModule(Matmul16(type), architecture);
      const auto report = RunProduct<uint16_t, float>(
          module, p, Launch16(p), type == "f16" ? Half : BFloat);
      ASSERT_TRUE(report.ok()) << type << report.status();
      ASSERT_FALSE(report->fault.has_value()) << report->fault->ToString();
      const Counters& counters = report->counters;
      EXPECT_EQ(counters.matrix_macs_f16, 128u * 192 * 160);
      EXPECT_EQ(counters.Of(InstructionClass::kMatrix),
                128u * 192 * 160 / (16 * 8 * 16));
      // Every block loads its rows of A and columns of B once.
      EXPECT_EQ(counters.async_copy_bytes, 6u * (64 + 64) * 160 * 2);
      // Swizzled: copies and ldmatrix.x4 take four passes each, no more.
      EXPECT_EQ(counters.shared_wavefronts, 4 * counters.shared_requests);
    }
  }
}

TEST(NvrtcMatmulTest, SplitOverBlocksWithAtomics) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(64, 64, 256);
  const PtxModule module = CompileModule(Matmul16("f16", true), "compute_80");
  const auto report =
      RunProduct<uint16_t, float>(module, p, Launch16(p, 4), Half);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_FALSE(report->fault.has_value()) << report->fault->ToString();
  EXPECT_GT(report->counters.Of(InstructionClass::kAtomic), 0u);
}

TEST(NvrtcMatmulTest, TensorCoresWithBytes) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(64, 128, 192);
  const PtxModule module = CompileModule(kInt8Matmul, "compute_80");
  const auto report = RunProduct<int8_t, int32_t>(
      module, p,
      {.entry = "matmul8",
       .grid = {2, 1, 1},
       .group = {128, 1, 1},
       .dynamic_shared_bytes = kInt8Shared},
      [](int x) { return int8_t(x); }, true);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_FALSE(report->fault.has_value()) << report->fault->ToString();
  EXPECT_EQ(report->counters.matrix_macs_int8, 64u * 128 * 192);
}

TEST(NvrtcMatmulTest, TuringTensorCores) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(32, 16, 24);
  const PtxModule module = CompileModule(kTuringMatmul, "compute_75");
  const auto report = RunProduct<uint16_t, float>(
      module, p, {.entry = "matmul75", .grid = {2, 2, 1}, .group = {32, 1, 1}},
      Half);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->fault.has_value()) << report->fault->ToString();
}

// The fault of a kernel with a mistake, or "wrong product".
std::string Outcome(const std::string& source, Launch launch,
                    const Problem& p) {
  const PtxModule module = CompileModule(source, "compute_80");
  const auto report =
      launch.entry == "matmul32"
          ? RunProduct<float, float>(module, p, launch,
                                     [](int x) { return float(x); })
          : RunProduct<uint16_t, float>(module, p, launch, Half);
  if (!report.ok()) return std::string(report.status().message());
  if (!report->fault.has_value()) return "clean";
  EXPECT_GT(report->fault->line, 0);
  return report->fault->ToString();
}

TEST(NvrtcMatmulTest, PlantedMistakesAreFound) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(64, 64, 128);
  const Launch plain = {.entry = "matmul32", .group = {256, 1, 1}};
  const Launch tensor = Launch16(p);
  const std::string source32 = kFloatMatmul, source16 = Matmul16("f16");
  EXPECT_EQ(Outcome(source32, plain, p), "clean");
  EXPECT_EQ(Outcome(source16, tensor, p), "clean");
  EXPECT_THAT(
      Outcome(Planted(source32, "__syncthreads();  // tile is complete", ""),
              plain, p),
      HasSubstr("shared_race at PTX line"));
  EXPECT_THAT(
      Outcome(Planted(source32, "__syncthreads();  // tile is used up", ""),
              plain, p),
      HasSubstr("shared_race at PTX line"));
  EXPECT_THAT(
      Outcome(Planted(source16, "cp.async.wait_group 1;", ""), tensor, p),
      HasSubstr("async_not_awaited at PTX line"));
  EXPECT_THAT(Outcome(Planted(source16, "cp.async.wait_group 1;",
                              "cp.async.wait_group 2;"),
                      tensor, p),
              HasSubstr("async_not_awaited"));
  EXPECT_THAT(
      Outcome(Planted(source16, "    __syncthreads();\n", ""), tensor, p),
      HasSubstr("shared_race"));
  Launch small = tensor;
  small.dynamic_shared_bytes -= 1024;
  EXPECT_THAT(Outcome(source16, small, p), HasSubstr("shared_out_of_bounds"));
  // Another row length in ldmatrix than in the copy.
  EXPECT_EQ(
      Outcome(Planted(source16, "ab + r * 64 +", "ab + r * 48 +"), tensor, p),
      "wrong product");
  EXPECT_THAT(
      Outcome(Planted(source16, "bb + r * 128 +", "bb + r * 132 +"), tensor, p),
      HasSubstr("misaligned"));
  // A whole tile beyond the end of B.
  EXPECT_THAT(
      Outcome(Planted(source16, "if (tile + kStages - 1 < last) load", "load"),
              tensor, p),
      HasSubstr("global_out_of_bounds"));
  EXPECT_THAT(Outcome(Planted(source32, "for (int k0 = 0; k0 < k; k0 += 16) {",
                              "for (int k0 = 0; k0 < k; k0 += 16) {"
                              " if (t < 200)"),
                      plain, p),
              HasSubstr("wrong"));
}

TEST(NvrtcMatmulTest, ReductionsAndTransposes) {
  SKIP_WITHOUT_NVRTC();
  const std::string source = R"(
extern "C" __global__ void reduce(const float* a, float* o, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  float v = 0;
  for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) v += a[i];
  s[t] = v;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) o[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_shuffle(const float* a, float* o, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  float v = 0;
  for (int i = t; i < n; i += blockDim.x) v += a[i];
  for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
  if ((t & 31) == 0) s[t >> 5] = v;
  __syncthreads();
  if (t < 32) {
    v = t < (blockDim.x >> 5) ? s[t] : 0;
    for (int k = 16; k; k >>= 1) v += __shfl_xor_sync(~0u, v, k);
    if (t == 0) o[0] = v;
  }
}
extern "C" __global__ void last_block(const float* a, float* part, unsigned* count,
                                      float* o) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = a[blockIdx.x];
    __threadfence();
    last = atomicAdd(count, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float s = 0;
    for (int i = 0; i < gridDim.x; ++i) s += ((volatile float*)part)[i];
    *o = s;
  }
}
extern "C" __global__ void transpose(const float* a, float* o, int n, int m) {
  __shared__ float s[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < m && y + j < n) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * m + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < n && y + j < m) o[(y + j) * n + x] = s[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void histogram(const int* a, int* o, int n) {
  __shared__ int h[64];
  const int t = threadIdx.x;
  if (t < 64) h[t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&h[a[i] & 63], 1);
  __syncthreads();
  if (t < 64) atomicAdd(o + t, h[t]);
}
)";
  for (const char* architecture : {"compute_75", "compute_100"}) {
    const PtxModule module = CompileModule(source, architecture);
    std::vector<float> a(1000);
    std::vector<int> b(1000), bins(64);
    double sum = 0;
    for (int i = 0; i < 1000; ++i) {
      a[i] = float(i * 7 % 31 - 9);
      b[i] = i * i;
      ++bins[b[i] & 63];
      sum += a[i];
    }
    TestMemory memory;
    const uint64_t in = memory.Put(a), out = memory.Put(std::vector<float>(8));
    RunClean(module,
             {.entry = "reduce",
              .grid = {3, 1, 1},
              .group = {256, 1, 1},
              .arguments = {in, out, 1000}},
             memory);
    auto have = memory.Get<float>(out, 3);
    EXPECT_EQ(have[0] + have[1] + have[2], sum);
    RunClean(module,
             {.entry = "reduce_shuffle",
              .group = {192, 1, 1},
              .arguments = {in, out, 1000}},
             memory);
    EXPECT_EQ(memory.Get<float>(out, 1)[0], sum);
    const uint64_t part = memory.Put(std::vector<float>(40));
    const uint64_t count = memory.Put(std::vector<uint32_t>(1));
    RunClean(module,
             {.entry = "last_block",
              .grid = {40, 1, 1},
              .group = {64, 1, 1},
              .arguments = {in, part, count, out}},
             memory);
    double first = 0;
    for (int i = 0; i < 40; ++i) first += a[i];
    EXPECT_EQ(memory.Get<float>(out, 1)[0], first);

    const uint64_t turned = memory.Put(std::vector<float>(1000));
    const LaunchReport report = RunClean(module,
                                         {.entry = "transpose",
                                          .grid = {2, 1, 1},
                                          .group = {32, 8, 1},
                                          .arguments = {in, turned, 25, 40}},
                                         memory);
    have = memory.Get<float>(turned, 1000);
    for (int i = 0; i < 25; ++i) {
      for (int j = 0; j < 40; ++j) EXPECT_EQ(have[j * 25 + i], a[i * 40 + j]);
    }
    // Padding to 33 keeps both sides free of conflicts.
    EXPECT_EQ(report.counters.shared_wavefronts,
              report.counters.shared_requests);

    const uint64_t counts = memory.Put(std::vector<int>(64));
    RunClean(module,
             {.entry = "histogram",
              .grid = {4, 1, 1},
              .group = {128, 1, 1},
              .arguments = {memory.Put(b), counts, 1000}},
             memory);
    EXPECT_EQ(memory.Get<int>(counts, 64), bins);
  }
}

// Counters of a few blocks, scaled up, are those of all where blocks are alike.
TEST(NvrtcMatmulTest, SampledBlocksCountLikeAll) {
  SKIP_WITHOUT_NVRTC();
  const Problem p(128, 256, 64);
  const PtxModule module = CompileModule(Matmul16("f16"), "compute_80");
  TestMemory memory;
  Launch launch = Launch16(p);
  launch.arguments = {memory.Put(Encode<uint16_t>(p.a, Half)),
                      memory.Put(Encode<uint16_t>(p.b, Half)),
                      memory.Put(std::vector<float>(p.m * p.n)),
                      p.m,
                      p.n,
                      p.k};
  LaunchReport all = RunClean(module, launch, memory);
  LaunchReport some = RunClean(module, launch, memory, {.sampled_blocks = 2});
  EXPECT_EQ(all.blocks_run, 8u);
  EXPECT_EQ(some.blocks_run, 2u);
  EXPECT_LT(some.counters.footprint_load_sectors,
            all.counters.footprint_load_sectors);
  some.counters.footprint_load_sectors = all.counters.footprint_load_sectors;
  some.counters.footprint_store_sectors = all.counters.footprint_store_sectors;
  EXPECT_TRUE(some.counters == all.counters);
}

}  // namespace
}  // namespace regatta::ptxsim

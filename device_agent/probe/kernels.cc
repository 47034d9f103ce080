#include "device_agent/probe/kernels.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace regatta {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = 2 << 20;

void Shuffle(std::vector<int32_t>& order, Random& random) {
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.Below(i)]);
  }
}

// Links all lines into one cycle: page after page in random order, and in
// random order within each page, so that the processor can neither guess the
// next line nor spends its time on page tables.
void* LinkLines(char* data, int64_t bytes, Random& random) {
  std::vector<int32_t> pages(static_cast<size_t>(bytes / kPage));
  std::vector<int32_t> lines(static_cast<size_t>(kPage / kLine));
  std::iota(pages.begin(), pages.end(), 0);
  std::iota(lines.begin(), lines.end(), 0);
  Shuffle(pages, random);
  char* first = nullptr;
  char* previous = nullptr;
  for (const int32_t page : pages) {
    Shuffle(lines, random);
    for (const int32_t line : lines) {
      char* const here = data + page * kPage + line * kLine;
      if (previous == nullptr) {
        first = here;
      } else {
        std::memcpy(previous, &here, sizeof(here));
      }
      previous = here;
    }
  }
  std::memcpy(previous, &first, sizeof(first));
  return first;
}

void* Chase(void* from, int64_t steps) {
  void* p = from;
  for (int64_t i = 0; i < steps; ++i) {
    std::memcpy(&p, p, sizeof(p));
    asm volatile("" : "+r"(p));
  }
  return p;
}

// ---- multiply-adds ----

constexpr int kAccumulators = 12;  // hides the latency and fits every ISA

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void FmaAvx512(int64_t iterations) {
  __m512 acc[kAccumulators];
  __m512 a = _mm512_set1_ps(1e-3f), b = _mm512_set1_ps(1e-3f);
  asm volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 16
  for (auto& v : acc) {
    v = _mm512_setzero_ps();
    asm volatile("" : "+v"(v));  // or equal chains would be merged into one
  }
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm512_fmadd_ps(a, b, v);
  }
#pragma GCC unroll 16
  for (auto& v : acc) asm volatile("" : : "v"(v));
}

__attribute__((target("avx2,fma"))) void FmaAvx2(int64_t iterations) {
  __m256 acc[kAccumulators];
  __m256 a = _mm256_set1_ps(1e-3f), b = _mm256_set1_ps(1e-3f);
  asm volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 16
  for (auto& v : acc) {
    v = _mm256_setzero_ps();
    asm volatile("" : "+x"(v));
  }
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm256_fmadd_ps(a, b, v);
  }
#pragma GCC unroll 16
  for (auto& v : acc) asm volatile("" : : "x"(v));
}

#elif defined(__aarch64__)

void FmaNeon(int64_t iterations) {
  float32x4_t acc[2 * kAccumulators];
  float32x4_t a = vdupq_n_f32(1e-3f), b = vdupq_n_f32(1e-3f);
  asm volatile("" : "+w"(a), "+w"(b));
#pragma GCC unroll 32
  for (auto& v : acc) {
    v = vdupq_n_f32(0);
    asm volatile("" : "+w"(v));
  }
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 32
    for (auto& v : acc) v = vfmaq_f32(v, a, b);
  }
#pragma GCC unroll 32
  for (auto& v : acc) asm volatile("" : : "w"(v));
}

#endif

// Any processor: whatever the compiler makes of four floats at once.
void FmaGeneric(int64_t iterations) {
  typedef float Vector __attribute__((vector_size(16)));
  Vector acc[kAccumulators];
  float scale = 1e-3f;
  asm volatile("" : "+m"(scale));
  const Vector a = {scale, scale, scale, scale};
  float start = 0;
#pragma GCC unroll 16
  for (auto& v : acc) {
    asm volatile("" : "+m"(start));
    v = Vector{start, start, start, start};
  }
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = a * v + a;
  }
  float sum = 0;
  for (auto& v : acc) sum += v[0] + v[1] + v[2] + v[3];
  asm volatile("" : : "m"(sum));
}

}  // namespace

std::unique_ptr<ProbeMemory> ProbeMemory::Allocate(int64_t bytes) {
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  // Best effort: small pages measure a little more of the page tables.
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  std::memset(data, 0, static_cast<size_t>(bytes));
  return std::unique_ptr<ProbeMemory>(
      new ProbeMemory(static_cast<char*>(data), bytes));
}

ProbeMemory::~ProbeMemory() { munmap(data_, static_cast<size_t>(bytes_)); }

double LoadLatencyNs(ProbeMemory& memory, int64_t bytes, Random& random) {
  bytes = bytes / kPage * kPage;
  CHECK(bytes >= kPage && bytes <= memory.bytes()) << bytes;
  void* p = LinkLines(memory.data(), bytes, random);
  const int64_t lines = bytes / kLine;
  // Small sets need many rounds for a clock of tens of nanoseconds.
  const int64_t steps = bytes <= (2 << 20) ? 50'000 : 25'000;
  p = Chase(p, std::max(lines, steps));
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 6; ++i) {
    const SteadyTime start = RealClock().Steady();
    p = Chase(p, steps);
    best =
        std::min(best, static_cast<double>(RealClock().Steady().ns - start.ns));
  }
  return best / static_cast<double>(steps);
}

double ReadBandwidth(ProbeMemory& memory, int64_t bytes, int passes,
                     const Clock& clock) {
  typedef uint64_t Vector __attribute__((vector_size(64)));
  const int64_t count = std::min(bytes, memory.bytes()) / 64;
  CHECK(count >= 4) << bytes;
  const auto* data = reinterpret_cast<const Vector*>(memory.data());
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    Vector sums[4] = {};
    const SteadyTime start = clock.Steady();
    for (int64_t i = 0; i + 4 <= count; i += 4) {
      for (int64_t j = 0; j < 4; ++j) sums[j] ^= data[i + j];
    }
    const int64_t elapsed = std::max<int64_t>(1, clock.Steady().ns - start.ns);
    uint64_t sink = 0;
    for (const Vector& sum : sums) {
      for (int j = 0; j < 8; ++j) sink ^= sum[j];
    }
    asm volatile("" : : "r"(sink));
    best = std::max(best, static_cast<double>(count / 4 * 4 * 64) * 1e9 /
                              static_cast<double>(elapsed));
  }
  return best;
}

FmaKernel BestFmaKernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return {"avx512f", 2.0 * 16 * kAccumulators, FmaAvx512};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {"avx2", 2.0 * 8 * kAccumulators, FmaAvx2};
  }
#elif defined(__aarch64__)
  return {"neon", 2.0 * 4 * 2 * kAccumulators, FmaNeon};
#endif
  return {"generic", 2.0 * 4 * kAccumulators, FmaGeneric};
}

int64_t TimeFma(const FmaKernel& kernel, int64_t iterations,
                const Clock& clock) {
  const SteadyTime start = clock.Steady();
  kernel.run(iterations);
  return std::max<int64_t>(1, clock.Steady().ns - start.ns);
}

int64_t CalibrateFma(const FmaKernel& kernel, int64_t target_ns,
                     const Clock& clock) {
  int64_t iterations = 1000;
  int64_t elapsed = TimeFma(kernel, iterations, clock);
  while (elapsed < target_ns / 4 && iterations < (int64_t{1} << 40)) {
    iterations *= 2;
    elapsed = TimeFma(kernel, iterations, clock);
  }
  return std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(iterations) *
                              static_cast<double>(target_ns) /
                              static_cast<double>(elapsed)));
}

}  // namespace regatta

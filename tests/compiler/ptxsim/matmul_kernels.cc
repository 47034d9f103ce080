#include "tests/compiler/ptxsim/matmul_kernels.h"

#include "absl/strings/str_replace.h"
#include "base/check.h"

namespace regatta::ptxsim {

const char kFloatMatmul[] = R"(
extern "C" __global__ void __launch_bounds__(256) matmul32(
    const float* __restrict__ A, const float* __restrict__ B,
    float* __restrict__ C, int m, int n, int k) {
  __shared__ float As[16][68], Bs[16][64];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float acc[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int i = t + u * 256;
      As[i % 16][i / 16] = A[(row + i / 16) * k + k0 + i % 16];
      Bs[i / 64][i % 64] = B[(k0 + i / 64) * n + column + i % 64];
    }
    __syncthreads();  // tile is complete
#pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
      const float4 a = *(const float4*)&As[kk][ty * 4];
      const float4 b = *(const float4*)&Bs[kk][tx * 4];
      const float av[4] = {a.x, a.y, a.z, a.w}, bv[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] += av[i] * bv[j];
    }
    __syncthreads();  // tile is used up
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    *(float4*)&C[(row + ty * 4 + i) * n + column + tx * 4] =
        make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
)";

namespace {

// Rows of A's tile have 4 chunks of 16 bytes, of B's tile 8.
constexpr char kMatmul16[] = R"(
typedef unsigned short u16;
typedef unsigned u32;
__device__ __forceinline__ u32 shared_address(const void* p) {
  return (u32)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from));
}
extern "C" __global__ void __launch_bounds__(128) matmul16(
    const u16* A, const u16* B, float* C, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char memory[];
  constexpr int kStages = 3, kA = 64 * 32 * 2, kB = 32 * 64 * 2;
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  const int wm = warp / 2 * 32, wn = warp % 2 * 32;
  const int bm = blockIdx.y * 64, bn = blockIdx.x * 64;
  const int first = FIRST_TILE, last = LAST_TILE;
  const u32 base = shared_address(memory);
  float c[2][4][4] = {};
  auto load = [&](int tile) {
    const u32 a = base + (tile - first) % kStages * (kA + kB), b = a + kA;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int i = t + q * 128, r = i / 4, chunk = i % 4;
      copy16(a + r * 64 + (chunk ^ ((r / 2) & 3)) * 16,
             A + (bm + r) * k + tile * 32 + chunk * 8);
    }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int i = t + q * 128, r = i / 8, chunk = i % 8;
      copy16(b + r * 128 + (chunk ^ (r & 7)) * 16,
             B + (tile * 32 + r) * n + bn + chunk * 8);
    }
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (first + s < last) load(first + s);
    asm volatile("cp.async.commit_group;");
  }
  for (int tile = first; tile < last; ++tile) {
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    if (tile + kStages - 1 < last) load(tile + kStages - 1);
    asm volatile("cp.async.commit_group;");
    const u32 ab = base + (tile - first) % kStages * (kA + kB), bb = ab + kA;
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      u32 a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int r = wm + i * 16 + (lane & 15), chunk = kk / 8 + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
            : "r"(ab + r * 64 + (chunk ^ ((r / 2) & 3)) * 16));
      }
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        const int r = kk + (lane & 15), chunk = (wn + j * 8) / 8 + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(b[j][0]), "=r"(b[j][1]), "=r"(b[j + 1][0]), "=r"(b[j + 1][1])
            : "r"(bb + r * 128 + (chunk ^ (r & 7)) * 16));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32 "
              "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
              : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                "r"(b[j][0]), "r"(b[j][1]));
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float* to = C + (bm + wm + i * 16 + lane / 4) * n + bn + wn + j * 8 + lane % 4 * 2;
      STORE
    }
}
)";

constexpr char kStorePlain[] = R"(
      *(float2*)to = make_float2(c[i][j][0], c[i][j][1]);
      *(float2*)(to + 8 * n) = make_float2(c[i][j][2], c[i][j][3]);
)";
constexpr char kStoreAtomic[] = R"(
      atomicAdd(to, c[i][j][0]); atomicAdd(to + 1, c[i][j][1]);
      atomicAdd(to + 8 * n, c[i][j][2]); atomicAdd(to + 8 * n + 1, c[i][j][3]);
)";

}  // namespace

std::string Matmul16(const std::string& type, bool split) {
  return absl::StrReplaceAll(
      kMatmul16,
      {{"TYPE", type},
       {"FIRST_TILE", split ? "k / 32 / gridDim.z * blockIdx.z" : "0"},
       {"LAST_TILE",
        split ? "k / 32 / gridDim.z * (blockIdx.z + 1)" : "k / 32"},
       {"STORE", split ? kStoreAtomic : kStorePlain}});
}

const char kInt8Matmul[] = R"(
typedef signed char s8;
typedef unsigned u32;
__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from));
}
extern "C" __global__ void __launch_bounds__(128) matmul8(
    const s8* A, const s8* B, int* C, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char memory[];
  constexpr int kTile = 64 * 64;
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  const int wm = warp / 2 * 32, wn = warp % 2 * 32;
  const int bm = blockIdx.y * 64, bn = blockIdx.x * 64;
  const u32 base = (u32)__cvta_generic_to_shared(memory);
  int c[2][4][4] = {};
  auto load = [&](int tile) {
    const u32 a = base + tile % 2 * (2 * kTile), b = a + kTile;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int i = t + q * 128, r = i / 4, chunk = i % 4;
      const u32 at = r * 64 + (chunk ^ ((r / 2) & 3)) * 16;
      copy16(a + at, A + (bm + r) * k + tile * 64 + chunk * 16);
      copy16(b + at, B + (bn + r) * k + tile * 64 + chunk * 16);
    }
    asm volatile("cp.async.commit_group;");
  };
  const int tiles = k / 64;
  load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      load(tile + 1);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    const u32 ab = base + tile % 2 * (2 * kTile), bb = ab + kTile;
#pragma unroll
    for (int kk = 0; kk < 64; kk += 32) {
      u32 a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int r = wm + i * 16 + (lane & 15), chunk = kk / 16 + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
            : "r"(ab + r * 64 + (chunk ^ ((r / 2) & 3)) * 16));
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int r = wn + j * 8 + (lane & 7), chunk = kk / 16 + ((lane >> 3) & 1);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
            : "=r"(b[j][0]), "=r"(b[j][1])
            : "r"(bb + r * 64 + (chunk ^ ((r / 2) & 3)) * 16));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
              "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+r"(c[i][j][0]), "+r"(c[i][j][1]), "+r"(c[i][j][2]), "+r"(c[i][j][3])
              : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                "r"(b[j][0]), "r"(b[j][1]));
    }
    __syncthreads();  // both stages may be filled again
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int* to = C + (bm + wm + i * 16 + lane / 4) * n + bn + wn + j * 8 + lane % 4 * 2;
      *(int2*)to = make_int2(c[i][j][0], c[i][j][1]);
      *(int2*)(to + 8 * n) = make_int2(c[i][j][2], c[i][j][3]);
    }
}
)";

const char kTuringMatmul[] = R"(
typedef unsigned short u16;
typedef unsigned u32;
extern "C" __global__ void matmul75(const u16* A, const u16* B, float* C, int m,
                                    int n, int k) {
  __shared__ __align__(16) u16 As[16][8], Bs[8][8];
  const int lane = threadIdx.x;
  const int bm = blockIdx.y * 16, bn = blockIdx.x * 8;
  float c[4] = {};
  for (int k0 = 0; k0 < k; k0 += 8) {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int i = lane + u * 32;
      As[i / 8][i % 8] = A[(bm + i / 8) * k + k0 + i % 8];
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int i = lane + u * 32;
      Bs[i / 8][i % 8] = B[(k0 + i / 8) * n + bn + i % 8];
    }
    __syncwarp();
    u32 a[2], b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
        : "=r"(a[0]), "=r"(a[1])
        : "r"((u32)__cvta_generic_to_shared(&As[lane & 15][0])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
        : "=r"(b) : "r"((u32)__cvta_generic_to_shared(&Bs[lane & 7][0])));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
    __syncwarp();
  }
  float* to = C + (bm + lane / 4) * n + bn + lane % 4 * 2;
  to[0] = c[0]; to[1] = c[1]; to[8 * n] = c[2]; to[8 * n + 1] = c[3];
}
)";

std::string Planted(std::string source, const std::string& from,
                    const std::string& to) {
  const size_t at = source.find(from);
  CHECK(at != std::string::npos) << "no '" << from << "' in the source";
  CHECK(source.find(from, at + 1) == std::string::npos)
      << "'" << from << "' is there twice";
  return source.replace(at, from.size(), to);
}

}  // namespace regatta::ptxsim

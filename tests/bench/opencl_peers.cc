#include "tests/bench/opencl_peers.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta::bench {
namespace {

constexpr char kCopies[] = R"(
#define TX (BN / RN)
#define TY (BM / RM)
__kernel __attribute__((reqd_work_group_size(TX, TY, 1)))
void hand_tiled(__global const float* restrict a,
                __global const float* restrict b, __global float* restrict c) {
  __local float a_tile[BK * BM];
  __local float b_tile[BK * BN];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int row0 = get_group_id(1) * BM, column0 = get_group_id(0) * BN;
  ROW sum[SUMS];
  for (int i = 0; i < SUMS; ++i) sum[i] = 0;
  for (int k0 = 0; k0 < N; k0 += BK) {
    for (int i = 0; i < BM * BK / (TX * TY); ++i) {
      const int e = i * TX * TY + ty * TX + tx;
      a_tile[e % BK * BM + e / BK] = a[(row0 + e / BK) * N + k0 + e % BK];
    }
    for (int i = 0; i < BK * BN / (TX * TY); ++i) {
      const int e = i * TX * TY + ty * TX + tx;
      b_tile[e] = b[(k0 + e / BN) * N + column0 + e % BN];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < BK; ++k) {
)";

constexpr char kElements[] = R"(
      for (int i = 0; i < RM; ++i) {
          for (int j = 0; j < RN; ++j) {
          sum[i * RN + j] += a_tile[k * BM + ty * RM + i] *
                             b_tile[k * BN + tx * RN + j];
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < RM; ++i) {
    for (int j = 0; j < RN; ++j) {
      c[(row0 + ty * RM + i) * N + column0 + tx * RN + j] = sum[i * RN + j];
    }
  }
}
)";

constexpr char kVectors[] = R"(
      const ROW row = LOAD(0, b_tile + k * BN + tx * RN);
      for (int i = 0; i < RM; ++i) {
        sum[i] += a_tile[k * BM + ty * RM + i] * row;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < RM; ++i) {
    STORE(sum[i], 0, c + (row0 + ty * RM + i) * N + column0 + tx * RN);
  }
}
)";

ModuleBuffer Square(const char* name, BufferRole role, int n) {
  return {.name = name,
          .role = role,
          .shape = {n, n},
          .bytes = int64_t{4} * n * n,
          .space = MemorySpace::kDevice};
}

}  // namespace

std::string HandTiles::Name() const {
  return absl::StrCat(m, "x", n, "x", k, "/", rows, "x", columns,
                      vectors ? " in vectors" : "");
}

std::vector<HandTiles> Peers() {
  return {{64, 64, 16, 4, 4},
          {64, 64, 32, 8, 8},
          {32, 64, 16, 2, 8},
          {16, 64, 16, 4, 16},
          {64, 64, 16, 4, 4, /*vectors=*/true},
          {32, 64, 16, 4, 16, /*vectors=*/true}};
}

Module HandTiled(const HandTiles& tiles, int n) {
  CHECK(n % tiles.m == 0 && n % tiles.n == 0 && n % tiles.k == 0);
  Module module;
  module.name = "hand_tiled";
  module.target = "opencl";
  module.loadable = absl::StrCat(
      "#define N ", n, "\n#define BM ", tiles.m, "\n#define BN ", tiles.n,
      "\n#define BK ", tiles.k, "\n#define RM ", tiles.rows, "\n#define RN ",
      tiles.columns, "\n#define SUMS ", tiles.vectors ? "RM" : "(RM * RN)",
      "\n#define ROW float",
      tiles.vectors
          ? absl::StrCat(tiles.columns, "\n#define LOAD vload", tiles.columns,
                         "\n#define STORE vstore", tiles.columns)
          : "",
      kCopies, tiles.vectors ? kVectors : kElements);
  module.buffers = {Square("A", BufferRole::kInput, n),
                    Square("B", BufferRole::kInput, n),
                    Square("C", BufferRole::kOutput, n)};
  module.kernels = {{.entry = "hand_tiled",
                     .arguments = {0, 1, 2},
                     .grid = {n / tiles.n, n / tiles.m},
                     .group = {tiles.n / tiles.columns, tiles.m / tiles.rows}}};
  module.host_sequence = {0};
  return module;
}

}  // namespace regatta::bench

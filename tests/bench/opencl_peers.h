// Matrix products in OpenCL C, tiled by hand: what a tuned schedule has to
// beat. Operands of a group go through local memory, each work-item keeps a
// tile of the result in registers. Only the tiles differ, and how registers are
// written.
#ifndef REGATTA_TESTS_BENCH_OPENCL_PEERS_H_
#define REGATTA_TESTS_BENCH_OPENCL_PEERS_H_

#include <string>
#include <vector>

#include "compiler/module/module.h"

namespace regatta::bench {

struct HandTiles {
  int m = 64, n = 64, k = 16;  // of a group
  int rows = 4, columns = 4;   // of a work-item
  bool vectors = false;        // rows of registers are OpenCL vectors

  std::string Name() const;  // "64x64x16/4x4"
};

// The peers of the benchmark, in the order of its table.
std::vector<HandTiles> Peers();

// C[n,n] = A[n,n] B[n,n] in f32. REQUIRES: every tile divides `n`.
Module HandTiled(const HandTiles& tiles, int n);

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_OPENCL_PEERS_H_

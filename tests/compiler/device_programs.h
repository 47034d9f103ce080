// Device kernels written by hand, for tests of loops and code generators.
#ifndef REGATTA_TESTS_COMPILER_DEVICE_PROGRAMS_H_
#define REGATTA_TESTS_COMPILER_DEVICE_PROGRAMS_H_

#include <cstdint>

#include "compiler/lower/loop_ir.h"

namespace regatta {

// C[m,n] = A[m,k] B[k,n] in tiles of `bm` x `bn` that one group computes,
// `rm` x `rn` elements a thread. Slices of `bk` of both operands are staged in
// local memory; what lies outside the matrices is padded with zeros and not
// stored. Sums are in registers, in f32 or i32.
struct TiledMatmul {
  int64_t m = 64, n = 64, k = 64;
  int64_t bm = 16, bn = 16, bk = 8;
  int64_t rm = 2, rn = 4;
  DType dtype = DType::kF32;  // of A and B
  DType out = DType::kF32;
  // Leaves out the barrier after staging (first), or before the next slice is
  // staged (second): a planted fault.
  bool first_barrier = true;
  bool second_barrier = true;

  // REQUIRES: rm divides bm, rn divides bn.
  loop::Program Emit() const;
};

// y[96] = x[96], the 48 elements of each half reversed, by 12 threads: both
// halves are copied to local memory asynchronously, and the first is used while
// the second is on its way.
struct AsyncCopies {
  bool first_wait = true;  // without it, a planted fault

  loop::Program Emit() const;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_DEVICE_PROGRAMS_H_

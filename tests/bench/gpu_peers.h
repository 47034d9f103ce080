// NVIDIA's libraries that kernels are measured against, opened at run time; no
// header of CUDA is needed. Declarations after the manuals of cuBLAS 12 and 13
// and cuDNN 9.
//
// Not thread-safe. Calls go to the default stream of the current context.
#ifndef REGATTA_TESTS_BENCH_GPU_PEERS_H_
#define REGATTA_TESTS_BENCH_GPU_PEERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace regatta::bench {

// Queues one call; its error.
using QueueCall = std::function<absl::Status()>;

// C[m,n] = A[m,k] * B[k,n], all f16 and row-major, summed in f32.
class CuBlas {
 public:
  // NotFound: it is not on this machine.
  static absl::StatusOr<CuBlas> Open();
  const std::string& version() const { return version_; }
  // REQUIRES: a context is current.
  absl::StatusOr<QueueCall> Gemm(int m, int n, int k, uint64_t a, uint64_t b,
                                 uint64_t c) const;

 private:
  void* library_ = nullptr;
  std::string version_;
};

// Stride 1, as many rows and columns out as in.
struct GpuConvolution {
  int n, h, w, ci, co, kernel;
};

// All f16, images [n,h,w,c], weights [co,kh,kw,ci], summed in f32.
class CuDnn {
 public:
  static absl::StatusOr<CuDnn> Open();
  const std::string& version() const { return version_; }
  // The fastest of the library's algorithms, which it tries here; `allocate`
  // gives device memory that outlives the call.
  absl::StatusOr<QueueCall> Convolution(
      const GpuConvolution& shape, uint64_t x, uint64_t w, uint64_t y,
      const std::function<absl::StatusOr<uint64_t>(size_t)>& allocate) const;

 private:
  void* library_ = nullptr;
  std::string version_;
};

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_GPU_PEERS_H_

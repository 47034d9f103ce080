// The vendor libraries that Regatta is measured against, opened at run time.
//
// Not thread-safe. All run on the calling thread only.
#ifndef REGATTA_TESTS_BENCH_PEERS_H_
#define REGATTA_TESTS_BENCH_PEERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace regatta::bench {

// One call of a prepared computation.
using Call = std::function<void()>;

// OpenBLAS: C[m,n] = A[m,k] * B[k,n], row-major f32.
class OpenBlas {
 public:
  // The library that scipy-openblas32 (symbols with its prefix) or Debian ships.
  static absl::StatusOr<OpenBlas> Open(const std::string& path);
  // The kernel it chose for this processor, its version.
  std::string kernel() const;
  std::string config() const;
  Call Sgemm(int m, int n, int k, const float* a, const float* b,
             float* c) const;

 private:
  void* handle_ = nullptr;
  std::string prefix_;
};

struct ConvShape {
  int64_t n, h, w, ci, co, kh, kw, stride, pad;
};

// oneDNN 3: forward convolution f32, NHWC activations, weights in oneDNN's own
// layout, reordered once outside the timed call.
class OneDnn {
 public:
  static absl::StatusOr<OneDnn> Open(const std::string& path);
  std::string version() const;
  // `x` NHWC, `w` KhKwCiCo, `y` NHWC. The implementation's name goes to `impl`.
  absl::StatusOr<Call> Convolution(const ConvShape& shape, const float* x,
                                   const float* w, float* y,
                                   std::string* impl) const;

 private:
  struct Api;
  std::shared_ptr<const Api> api_;
};

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_PEERS_H_

#include "tests/bench/gpu_peers.h"

#include <dlfcn.h>

#include <array>
#include <initializer_list>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace regatta::bench {
namespace {

constexpr int kHalf = 2;  // CUDA_R_16F and CUDNN_DATA_HALF

absl::StatusOr<void*> OpenFirst(std::initializer_list<const char*> names,
                                const char* product) {
  for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
    for (const char* name : names) {
      void* library =
          dlopen(absl::StrCat(folder, name).c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (library != nullptr) return library;
    }
  }
  return absl::NotFoundError(absl::StrCat(product, " is not on this machine (",
                                          absl::StrJoin(names, ", "), ")"));
}

// Remembers the first function that is missing and the first call that fails.
class Caller {
 public:
  Caller(void* library, const char* product)
      : library_(library), product_(product) {}

  template <typename... Arguments>
  void operator()(const char* name, Arguments... arguments) {
    if (!status_.ok()) return;
    void* found = dlsym(library_, name);
    if (found == nullptr) {
      status_ = absl::NotFoundError(
          absl::StrCat(product_, " has no function ", name));
      return;
    }
    const int code =
        reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
    if (code == 0) return;
    status_ = absl::UnavailableError(
        absl::StrCat(product_, ": ", name, " gives ", code));
  }
  const absl::Status& status() const { return status_; }

 private:
  void* library_;
  const char* product_;
  absl::Status status_;
};

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

absl::StatusOr<CuBlas> CuBlas::Open() {
  CuBlas blas;
  ASSIGN_OR_RETURN(blas.library_, OpenFirst({"libcublas.so.13",
                                             "libcublas.so.12", "libcublas.so"},
                                            "cuBLAS"));
  Caller call(blas.library_, "cuBLAS");
  std::array<int, 3> version = {};
  for (int part = 0; part < 3; ++part) {
    call("cublasGetProperty", part, &version[part]);
  }
  RETURN_IF_ERROR(call.status());
  blas.version_ = absl::StrCat("cuBLAS ", absl::StrJoin(version, "."));
  return blas;
}

absl::StatusOr<QueueCall> CuBlas::Gemm(int m, int n, int k, uint64_t a,
                                       uint64_t b, uint64_t c) const {
  Caller call(library_, "cuBLAS");
  void* handle = nullptr;
  call("cublasCreate_v2", &handle);
  RETURN_IF_ERROR(call.status());
  return QueueCall([library = library_, handle, m, n, k, a, b, c] {
    constexpr int kNotTransposed = 0, kComputeF32 = 68, kDefault = -1;
    static const float one = 1, zero = 0;
    Caller call(library, "cuBLAS");
    // Column by column, the row-major product is B^T * A^T = C^T.
    call("cublasGemmEx", handle, kNotTransposed, kNotTransposed, n, m, k,
         static_cast<const void*>(&one), Pointer(b), kHalf, n, Pointer(a),
         kHalf, k, static_cast<const void*>(&zero), Pointer(c), kHalf, n,
         kComputeF32, kDefault);
    return call.status();
  });
}

absl::StatusOr<CuDnn> CuDnn::Open() {
  CuDnn dnn;
  ASSIGN_OR_RETURN(dnn.library_,
                   OpenFirst({"libcudnn.so.9", "libcudnn.so"}, "cuDNN"));
  Caller call(dnn.library_, "cuDNN");
  std::array<int, 3> version = {};
  for (int part = 0; part < 3; ++part) {
    call("cudnnGetProperty", part, &version[part]);
  }
  RETURN_IF_ERROR(call.status());
  dnn.version_ = absl::StrCat("cuDNN ", absl::StrJoin(version, "."));
  return dnn;
}

absl::StatusOr<QueueCall> CuDnn::Convolution(
    const GpuConvolution& shape, uint64_t x, uint64_t w, uint64_t y,
    const std::function<absl::StatusOr<uint64_t>(size_t)>& allocate) const {
  constexpr int kNhwc = 1, kCrossCorrelation = 1, kTensorOps = 1, kFloat = 0;
  struct Performance {  // cudnnConvolutionFwdAlgoPerf_t
    int algorithm = 0, status = 0;
    float milliseconds = 0;
    size_t memory = 0;
    int determinism = 0, math = 0, reserved[3] = {};
  };
  Caller call(library_, "cuDNN");
  void *handle = nullptr, *in = nullptr, *weights = nullptr, *out = nullptr;
  void* convolution = nullptr;
  const int pad = shape.kernel / 2;
  call("cudnnCreate", &handle);
  call("cudnnCreateTensorDescriptor", &in);
  call("cudnnCreateTensorDescriptor", &out);
  call("cudnnCreateFilterDescriptor", &weights);
  call("cudnnCreateConvolutionDescriptor", &convolution);
  call("cudnnSetTensor4dDescriptor", in, kNhwc, kHalf, shape.n, shape.ci,
       shape.h, shape.w);
  call("cudnnSetTensor4dDescriptor", out, kNhwc, kHalf, shape.n, shape.co,
       shape.h, shape.w);
  call("cudnnSetFilter4dDescriptor", weights, kHalf, kNhwc, shape.co, shape.ci,
       shape.kernel, shape.kernel);
  call("cudnnSetConvolution2dDescriptor", convolution, pad, pad, 1, 1, 1, 1,
       kCrossCorrelation, kFloat);
  call("cudnnSetConvolutionMathType", convolution, kTensorOps);
  // Fastest first; those that failed say so.
  std::array<Performance, 16> found;
  int count = 0;
  call("cudnnFindConvolutionForwardAlgorithm", handle, in, weights, convolution,
       out, static_cast<int>(found.size()), &count, found.data());
  RETURN_IF_ERROR(call.status());
  if (count == 0 || found[0].status != 0) {
    return absl::UnavailableError("cuDNN has no algorithm for this shape");
  }
  const size_t bytes = found[0].memory;
  ASSIGN_OR_RETURN(const uint64_t workspace, allocate(bytes + 1));
  const int algorithm = found[0].algorithm;
  return QueueCall([=, library = library_] {
    static const float one = 1, zero = 0;
    Caller call(library, "cuDNN");
    call("cudnnConvolutionForward", handle, static_cast<const void*>(&one), in,
         Pointer(x), weights, Pointer(w), convolution, algorithm,
         Pointer(workspace), bytes, static_cast<const void*>(&zero), out,
         Pointer(y));
    return call.status();
  });
}

}  // namespace regatta::bench

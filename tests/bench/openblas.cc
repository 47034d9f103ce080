#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "tests/bench/peers.h"

namespace regatta::bench {
namespace {

enum { kRowMajor = 101, kNoTranspose = 111 };
using SgemmFn = void (*)(int, int, int, int, int, int, float, const float*, int,
                         const float*, int, float, float*, int);

}  // namespace

absl::StatusOr<OpenBlas> OpenBlas::Open(const std::string& path) {
  OpenBlas blas;
  blas.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (blas.handle_ == nullptr) return absl::NotFoundError(dlerror());
  for (const char* prefix : {"", "scipy_"}) {
    if (dlsym(blas.handle_, absl::StrCat(prefix, "cblas_sgemm").c_str())) {
      blas.prefix_ = prefix;
      auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(
          blas.handle_,
          absl::StrCat(prefix, "openblas_set_num_threads").c_str()));
      if (set_threads != nullptr) set_threads(1);
      return blas;
    }
  }
  return absl::NotFoundError(absl::StrCat(path, " has no cblas_sgemm"));
}

std::string OpenBlas::kernel() const {
  auto get = reinterpret_cast<const char* (*)()>(
      dlsym(handle_, absl::StrCat(prefix_, "openblas_get_corename").c_str()));
  return get == nullptr ? "unknown" : get();
}

std::string OpenBlas::config() const {
  auto get = reinterpret_cast<const char* (*)()>(
      dlsym(handle_, absl::StrCat(prefix_, "openblas_get_config").c_str()));
  return get == nullptr ? "unknown" : get();
}

Call OpenBlas::Sgemm(int m, int n, int k, const float* a, const float* b,
                     float* c) const {
  auto sgemm = reinterpret_cast<SgemmFn>(
      dlsym(handle_, absl::StrCat(prefix_, "cblas_sgemm").c_str()));
  return [=] {
    sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1.0f, a, k, b, n,
          0.0f, c, n);
  };
}

}  // namespace regatta::bench

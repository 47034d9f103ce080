// CUDA C++ to PTX and cubin for tests, where NVRTC is installed.
#ifndef REGATTA_TESTS_COMPILER_PTXSIM_NVRTC_H_
#define REGATTA_TESTS_COMPILER_PTXSIM_NVRTC_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "compiler/codegen/cuda/nvrtc.h"

namespace regatta::ptxsim {

// `architecture`: "compute_80" gives PTX only, "sm_80" the cubin too.
inline absl::StatusOr<cuda::Nvrtc::Compiled> CompileCuda(
    const std::string& source, const std::string& architecture) {
  ASSIGN_OR_RETURN(const cuda::Nvrtc* nvrtc, cuda::Nvrtc::Load());
  return nvrtc->Compile(source, architecture, absl::Minutes(2), RealClock());
}

}  // namespace regatta::ptxsim

#define SKIP_WITHOUT_NVRTC()                           \
  do {                                                 \
    const auto nvrtc = ::regatta::cuda::Nvrtc::Load(); \
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();   \
  } while (false)

#endif  // REGATTA_TESTS_COMPILER_PTXSIM_NVRTC_H_

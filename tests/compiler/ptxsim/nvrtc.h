// NVRTC opened at run time: CUDA C++ to PTX and cubin.
#ifndef REGATTA_TESTS_COMPILER_PTXSIM_NVRTC_H_
#define REGATTA_TESTS_COMPILER_PTXSIM_NVRTC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta::ptxsim {

struct Compiled {
  std::string ptx;
  std::string cubin;  // empty for a virtual architecture
};

// `architecture`: "compute_80" gives PTX only, "sm_80" both. Unavailable when
// libnvrtc.so.13 is not on this machine: tests skip with that reason.
absl::StatusOr<Compiled> CompileCuda(
    const std::string& source, const std::string& architecture,
    const std::vector<std::string>& options = {});

// Empty when NVRTC is there, else why not.
std::string WhyNoNvrtc();

}  // namespace regatta::ptxsim

#define SKIP_WITHOUT_NVRTC()                                     \
  do {                                                           \
    if (const std::string why = ::regatta::ptxsim::WhyNoNvrtc(); \
        !why.empty()) {                                          \
      GTEST_SKIP() << why;                                       \
    }                                                            \
  } while (false)

#endif  // REGATTA_TESTS_COMPILER_PTXSIM_NVRTC_H_

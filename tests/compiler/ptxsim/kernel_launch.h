// Launching compiled kernels in tests: arrays in, arrays out.
#ifndef REGATTA_TESTS_COMPILER_PTXSIM_KERNEL_LAUNCH_H_
#define REGATTA_TESTS_COMPILER_PTXSIM_KERNEL_LAUNCH_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "compiler/ptxsim/launch.h"
#include "tests/compiler/ptxsim/nvrtc.h"

namespace regatta::ptxsim {

// The module that NVRTC makes of `source`, or the end of the test program.
inline PtxModule CompileModule(const std::string& source,
                               const std::string& architecture) {
  const auto compiled = CompileCuda(source, architecture);
  CHECK(compiled.ok()) << architecture << ": " << compiled.status();
  auto module = PtxModule::Parse(compiled->ptx);
  CHECK(module.ok()) << architecture << ": " << module.status();
  return *module;
}

// A DeviceMemory whose calls fail the test instead of returning a status.
class TestMemory {
 public:
  template <typename T>
  uint64_t Put(const std::vector<T>& values) {
    const uint64_t address =
        memory_.Allocate(std::max<size_t>(values.size(), 1) * sizeof(T))
            .value();
    EXPECT_TRUE(memory_.WriteArray<T>(address, values).ok());
    return address;
  }
  template <typename T>
  std::vector<T> Get(uint64_t address, size_t count) {
    return memory_.ReadArray<T>(address, count).value();
  }
  DeviceMemory& memory() { return memory_; }

 private:
  DeviceMemory memory_;
};

// Runs and expects neither an error nor a fault.
inline LaunchReport RunClean(const PtxModule& module, const Launch& launch,
                             TestMemory& memory,
                             const RunOptions& options = {}) {
  const auto report = RunKernel(module, launch, memory.memory(), options);
  EXPECT_TRUE(report.ok()) << launch.entry << ": " << report.status();
  if (!report.ok()) return {};
  EXPECT_FALSE(report->fault.has_value())
      << launch.entry << ": " << report->fault->ToString();
  return *report;
}

}  // namespace regatta::ptxsim

#endif  // REGATTA_TESTS_COMPILER_PTXSIM_KERNEL_LAUNCH_H_

// For tests that run OpenCL kernels: skips where there is no device, and gives
// PoCL, whose kernels are compiled code on disk, a cache of this process's own.
#ifndef REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_
#define REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "compiler/module/module.h"
#include "compiler/module/tensor_bytes.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_runtime.h"
#include "device_agent/verify/guarded_memory.h"
#include "gtest/gtest.h"

namespace regatta::testing {

// The first device; made before the driver is loaded, removed at exit.
class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static const Cache cache;
    const auto devices = ListOpenClDevices();
    ASSERT_TRUE(devices.ok()) << devices.status();
    if (devices->empty()) {
      GTEST_SKIP() << "no OpenCL device here: install pocl-opencl-icd or a "
                      "GPU's driver";
    }
    device_ = devices->front();
  }

  v1::BoardDevice device_;

 private:
  struct Cache {
    Cache() : path(::testing::TempDir() + "regatta-pocl-XXXXXX") {
      EXPECT_NE(mkdtemp(path.data()), nullptr);
      setenv("POCL_CACHE_DIR", path.c_str(), 1);
    }
    ~Cache() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
};

// A module of f32 tensors, piece by piece.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(std::string source) {
    module_.name = kTrialModuleName;
    module_.target = "opencl";
    module_.loadable = std::move(source);
  }
  // The index of the buffer for kernels. Inputs first, then outputs.
  int Buffer(BufferRole role, std::string name, int64_t elements) {
    ModuleBuffer buffer;
    buffer.name = std::move(name);
    buffer.role = role;
    buffer.shape = {elements};
    buffer.bytes = elements * 4;
    buffer.space = MemorySpace::kDevice;
    module_.buffers.push_back(std::move(buffer));
    return static_cast<int>(module_.buffers.size()) - 1;
  }
  // Launched after those before.
  void Launch(std::string entry, std::vector<int> arguments,
              std::vector<int64_t> grid, std::vector<int64_t> group) {
    module_.host_sequence.push_back(static_cast<int>(module_.kernels.size()));
    module_.kernels.push_back({std::move(entry), std::move(arguments),
                               std::move(grid), std::move(group)});
  }
  const Module& module() const { return module_; }

 private:
  Module module_;
};

// Tensors in host memory, as a runtime takes them.
inline std::vector<GuardedMemory> HostTensors(
    const std::vector<std::vector<double>>& tensors) {
  std::vector<GuardedMemory> memory;
  for (const std::vector<double>& values : tensors) {
    auto allocated = GuardedMemory::Allocate(
        "input", static_cast<int64_t>(values.size()) * 4, 64);
    EXPECT_TRUE(allocated.ok()) << allocated.status();
    WriteValues(values, DType::kF32, allocated->data());
    memory.push_back(*std::move(allocated));
  }
  return memory;
}

// "" or the failure, for messages and comparisons.
inline std::string TextOf(const MaybeFailure& failure) {
  return failure.has_value()
             ? v1::Outcome_Name(failure->outcome()) + ": " + failure->detail()
             : "";
}

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_

// Modules and tensors for tests of the runtimes of devices.
#ifndef REGATTA_TESTS_DEVICE_AGENT_DEVICE_SUPPORT_H_
#define REGATTA_TESTS_DEVICE_AGENT_DEVICE_SUPPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/module/module.h"
#include "compiler/module/tensor_bytes.h"
#include "device_agent/run/module_runtime.h"
#include "device_agent/verify/guarded_memory.h"
#include "gtest/gtest.h"

namespace regatta::testing {

// A module of f32 tensors, piece by piece.
class ModuleBuilder {
 public:
  // `loadable`: what the kind of target wants: OpenCL C.
  explicit ModuleBuilder(std::string loadable, std::string target = "opencl") {
    module_.name = kTrialModuleName;
    module_.target = std::move(target);
    module_.loadable = std::move(loadable);
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
              std::vector<int64_t> grid, std::vector<int64_t> group,
              int64_t shared_bytes = 0) {
    module_.host_sequence.push_back(static_cast<int>(module_.kernels.size()));
    module_.kernels.push_back({std::move(entry), std::move(arguments),
                               std::move(grid), std::move(group),
                               shared_bytes});
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

#endif  // REGATTA_TESTS_DEVICE_AGENT_DEVICE_SUPPORT_H_

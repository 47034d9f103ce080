#include "tests/compiler/cuda_run.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/module/tensor_bytes.h"
#include "compiler/ptxsim/launch.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

uint32_t Extent(const std::vector<int64_t>& extents, size_t dimension) {
  return dimension < extents.size() ? static_cast<uint32_t>(extents[dimension])
                                    : 1;
}

ptxsim::Dim3 Dimensions(const std::vector<int64_t>& extents) {
  return {Extent(extents, 0), Extent(extents, 1), Extent(extents, 2)};
}

struct SimulatedRun {
  std::vector<TensorValues> outputs;
  std::string fault;
};

absl::StatusOr<SimulatedRun> Simulate(const Module& module,
                                      const std::vector<TensorValues>& inputs) {
  ASSIGN_OR_RETURN(const CudaBinary binary, ParseCudaBinary(module.loadable));
  ASSIGN_OR_RETURN(const ptxsim::PtxModule ptx,
                   ptxsim::PtxModule::Parse(binary.ptx));
  ptxsim::DeviceMemory memory;
  std::vector<uint64_t> addresses;
  size_t next = 0;
  for (const ModuleBuffer& buffer : module.buffers) {
    ASSIGN_OR_RETURN(const uint64_t address, memory.Allocate(buffer.bytes));
    addresses.push_back(address);
    if (buffer.role != BufferRole::kInput) continue;
    const std::string bytes = ValuesToBytes(inputs[next++], buffer.dtype);
    RETURN_IF_ERROR(memory.Write(
        address,
        {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}));
  }
  SimulatedRun run;
  for (const int index : module.host_sequence) {
    const ModuleKernel& kernel = module.kernels[index];
    ptxsim::Launch launch;
    launch.entry = kernel.entry;
    launch.grid = Dimensions(kernel.grid);
    launch.group = Dimensions(kernel.group);
    launch.dynamic_shared_bytes = static_cast<uint32_t>(kernel.shared_bytes);
    for (const int argument : kernel.arguments) {
      launch.arguments.emplace_back(addresses[argument]);
    }
    ASSIGN_OR_RETURN(const ptxsim::LaunchReport report,
                     ptxsim::RunKernel(ptx, launch, memory));
    if (report.fault) {
      run.fault = report.fault->ToString();
      return run;
    }
  }
  for (size_t i = 0; i < module.buffers.size(); ++i) {
    const ModuleBuffer& buffer = module.buffers[i];
    if (buffer.role != BufferRole::kOutput) continue;
    std::string bytes(buffer.bytes, '\0');
    RETURN_IF_ERROR(memory.Read(
        addresses[i],
        {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
    ASSIGN_OR_RETURN(TensorValues values, BytesToValues(bytes, buffer.dtype));
    run.outputs.push_back(std::move(values));
  }
  return run;
}

}  // namespace

std::vector<TensorValues> RunOnSimulatedGpu(
    const Module& module, const std::vector<TensorValues>& inputs) {
  const auto run = Simulate(module, inputs);
  EXPECT_TRUE(run.ok()) << StatusText(run);
  if (!run.ok()) return {};
  EXPECT_EQ(run->fault, "");
  return run->outputs;
}

std::string FaultOnSimulatedGpu(const Module& module,
                                const std::vector<TensorValues>& inputs) {
  const auto run = Simulate(module, inputs);
  EXPECT_TRUE(run.ok()) << StatusText(run);
  return run.ok() ? run->fault : "";
}

}  // namespace regatta

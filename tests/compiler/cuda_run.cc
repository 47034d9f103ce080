#include "tests/compiler/cuda_run.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "compiler/module/tensor_bytes.h"
#include "tests/compiler/status_text.h"

namespace regatta {

absl::StatusOr<SimulatedRun> SimulateModule(
    const Module& module, const std::vector<TensorValues>& inputs,
    const ptxsim::RunOptions& options) {
  std::vector<std::string> bytes;
  for (const ModuleBuffer* buffer :
       module.BuffersWithRole(BufferRole::kInput)) {
    bytes.push_back(ValuesToBytes(inputs[bytes.size()], buffer->dtype));
  }
  ASSIGN_OR_RETURN(testing::SimulatedCall call,
                   testing::SimulateCall(module, bytes, options));
  SimulatedRun run{.outputs = {},
                   .fault = std::move(call.fault),
                   .kernels = std::move(call.kernels)};
  const auto outputs = module.BuffersWithRole(BufferRole::kOutput);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    ASSIGN_OR_RETURN(TensorValues values,
                     BytesToValues(call.outputs[i], outputs[i]->dtype));
    run.outputs.push_back(std::move(values));
  }
  return run;
}

std::vector<TensorValues> RunOnSimulatedGpu(
    const Module& module, const std::vector<TensorValues>& inputs) {
  const auto run = SimulateModule(module, inputs);
  EXPECT_TRUE(run.ok()) << StatusText(run);
  if (!run.ok()) return {};
  EXPECT_EQ(run->fault, "");
  return run->outputs;
}

std::string FaultOnSimulatedGpu(const Module& module,
                                const std::vector<TensorValues>& inputs) {
  const auto run = SimulateModule(module, inputs);
  EXPECT_TRUE(run.ok()) << StatusText(run);
  return run.ok() ? run->fault : "";
}

}  // namespace regatta

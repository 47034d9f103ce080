// CUDA modules run by the PTX simulator.
#ifndef REGATTA_TESTS_COMPILER_CUDA_RUN_H_
#define REGATTA_TESTS_COMPILER_CUDA_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interp/interpreter.h"
#include "compiler/module/module.h"
#include "compiler/ptxsim/launch.h"
#include "tests/support/simulated_module.h"

namespace regatta {

// Runs the host sequence once. What the simulator finds wrong with a kernel
// (races, accesses outside of buffers) fails the test.
std::vector<TensorValues> RunOnSimulatedGpu(
    const Module& module, const std::vector<TensorValues>& inputs);

// The same for modules that are expected to do something wrong: what it was,
// "" for nothing.
std::string FaultOnSimulatedGpu(const Module& module,
                                const std::vector<TensorValues>& inputs);

// The same with what every launch did.
struct SimulatedRun {
  std::vector<TensorValues> outputs;  // none after a fault
  std::string fault;
  std::vector<testing::SimulatedKernel> kernels;
};
absl::StatusOr<SimulatedRun> SimulateModule(
    const Module& module, const std::vector<TensorValues>& inputs,
    const ptxsim::RunOptions& options = {});

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_CUDA_RUN_H_

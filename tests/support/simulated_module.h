// One call of a CUDA module in the PTX simulator: what it computes, what it did
// wrong, and what it cost.
#ifndef REGATTA_TESTS_SUPPORT_SIMULATED_MODULE_H_
#define REGATTA_TESTS_SUPPORT_SIMULATED_MODULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/module.h"
#include "compiler/ptxsim/cost_model.h"
#include "compiler/ptxsim/launch.h"

namespace regatta::testing {

struct SimulatedKernel {
  std::string entry;
  ptxsim::LaunchReport report;
  ptxsim::BlockResources block;  // as the cubin says
};

struct SimulatedCall {
  std::vector<std::string> outputs;      // bytes; none after a fault
  std::string fault;                     // "" when nothing went wrong
  std::vector<SimulatedKernel> kernels;  // in the order of calls
};

// `inputs`: the bytes of each, in the module's order. Errors: the module is no
// CUDA module, or holds what the simulator does not know.
absl::StatusOr<SimulatedCall> SimulateCall(
    const Module& module, absl::Span<const std::string> inputs,
    const ptxsim::RunOptions& options = {});

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_SIMULATED_MODULE_H_

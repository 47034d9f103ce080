// The GPUs that the simulated driver can show, one for each architecture that
// the PTX simulator knows.
//
// Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_CUDA_SIM_GPU_LIST_H_
#define REGATTA_DEVICE_AGENT_CUDA_SIM_GPU_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/cost_model.h"

namespace regatta::cuda_sim {

// The variable that says which GPUs there are: "sm_80", or several of them,
// separated by commas ("sm_80,sm_90"). Unset: "sm_80".
inline constexpr char kGpusVariable[] = "REGATTA_CUDA_SIM";

// Of every simulated device, whatever the product has: it is host memory.
inline constexpr uint64_t kMemoryBytes = uint64_t{2} << 30;

struct Gpu {
  ptxsim::SimulatedGpu model;
  std::string name;  // "Simulated sm_80"
  int l2_bytes = 0;
  bool integrated = false;  // shares the host's memory
};

// InvalidArgument, naming those there are, for one that is not listed.
absl::StatusOr<std::vector<Gpu>> ChooseGpus(std::string_view list);

}  // namespace regatta::cuda_sim

#endif  // REGATTA_DEVICE_AGENT_CUDA_SIM_GPU_LIST_H_

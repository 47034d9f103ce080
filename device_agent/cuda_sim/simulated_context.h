// One simulated GPU as a process sees it through the driver: memory, code,
// launches, a clock. Kernels run in LaunchKernel, and what they do wrong is
// told by whatever is called next, for ever, as in a context of a real driver.
// A kernel that does not end, or that waits for itself, is never waited out:
// who waits must wait for ever (hung).
//
// The clock is the model's: it advances by what a launch costs
// (compiler/ptxsim/cost_model.h) and by the time that bytes take through the
// device's memory, and stands still otherwise. So times are the same on every
// run, whatever the machine does meanwhile.
//
// Functions return errors of CUDA's driver. Thread-compatible: the exported
// functions hold one lock.
#ifndef REGATTA_DEVICE_AGENT_CUDA_SIM_SIMULATED_CONTEXT_H_
#define REGATTA_DEVICE_AGENT_CUDA_SIM_SIMULATED_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ptxsim/device_memory.h"
#include "compiler/ptxsim/launch.h"
#include "device_agent/cuda_sim/code_module.h"
#include "device_agent/cuda_sim/gpu_list.h"
#include "device_agent/cuda_sim/launch_memo.h"
#include "device_agent/run/cuda_abi.h"

namespace regatta::cuda_sim {

struct LaunchShape {
  ptxsim::Dim3 grid, block;
  uint32_t shared_bytes = 0;
};

class SimulatedContext {
 public:
  explicit SimulatedContext(Gpu gpu);

  const Gpu& gpu() const { return gpu_; }
  // What went wrong last, for people; "" while nothing has.
  const std::string& fault() const { return fault_; }
  // A new call begins: forgets what was wrong with the last one, but for what
  // stays wrong.
  void BeginCall();
  // Of the clock; what an event stores.
  int64_t picoseconds() const { return picoseconds_; }

  cuda::Result Allocate(uint64_t bytes, bool managed, uint64_t* address);
  cuda::Result Free(uint64_t address);
  cuda::Result Write(uint64_t address, const void* from, uint64_t bytes);
  cuda::Result Read(uint64_t address, void* to, uint64_t bytes);
  cuda::Result Fill(uint64_t address, uint8_t value, uint64_t bytes);

  // A cubin or PTX; `log` gets what is wrong with it.
  cuda::Result LoadCode(const void* image, CodeModule** module,
                        std::string* log);
  cuda::Result Unload(CodeModule* module);
  cuda::Result Allow(Kernel* kernel, int64_t dynamic_shared);

  // `arguments`: pointers to them, as many as the kernel has parameters.
  cuda::Result Launch(const Kernel& kernel, const LaunchShape& shape,
                      void** arguments);
  // A kernel never ends: callers that wait must wait for ever.
  bool hung() const { return hung_; }
  // How many launches were simulated; the others were known (launch_memo.h).
  int64_t simulated_launches() const { return simulated_launches_; }
  // The error that every call answers from now on; 0: none.
  cuda::Result error() const { return error_; }

 private:
  cuda::Result CheckShape(const Kernel& kernel, const LaunchShape& shape);
  // Of the buffers that the arguments point into.
  uint64_t BytesBehind(const std::vector<ptxsim::Argument>& arguments) const;
  void TakeFault(const ptxsim::Fault& fault);
  cuda::Result Refuse(cuda::Result error, std::string why);
  // Bytes through the memory.
  void Advance(uint64_t bytes);

  const Gpu gpu_;
  ptxsim::DeviceMemory memory_;
  LaunchMemo memo_;
  std::vector<std::unique_ptr<CodeModule>> modules_;
  std::optional<ptxsim::Cubin> last_cubin_;  // given, not taken
  int64_t picoseconds_ = 0;
  int64_t simulated_launches_ = 0;
  bool hung_ = false;
  cuda::Result error_ = cuda::kSuccess;
  std::string fault_;
};

}  // namespace regatta::cuda_sim

#endif  // REGATTA_DEVICE_AGENT_CUDA_SIM_SIMULATED_CONTEXT_H_

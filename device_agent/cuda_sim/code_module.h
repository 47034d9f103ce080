// Code that was given to the simulated driver: PTX, and what the cubin that it
// came with says of its kernels.
//
// The simulator executes PTX, but only a cubin knows how many registers a
// kernel takes. So a bare cubin is answered as a driver answers one for another
// GPU (no binary), its facts are kept, and the PTX that the agent then gives
// takes those of kernels of the same names. PTX alone is taken to use
// kUnknownRegisters registers in each thread.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_CUDA_SIM_CODE_MODULE_H_
#define REGATTA_DEVICE_AGENT_CUDA_SIM_CODE_MODULE_H_

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/cost_model.h"
#include "compiler/ptxsim/cubin.h"
#include "compiler/ptxsim/ptx_module.h"

namespace regatta::cuda_sim {

inline constexpr int kUnknownRegisters = 64;
// Without leave, the dynamic and static shared memory of a block.
inline constexpr uint32_t kPlainShared = 48 << 10;

class CodeModule;

struct Kernel {
  const CodeModule* module = nullptr;
  const ptxsim::PtxModule::EntryInfo* entry = nullptr;
  int registers = kUnknownRegisters;
  uint32_t local_bytes = 0;
  int max_threads = 0;          // of a block, by its registers and its bounds
  uint32_t max_dynamic_shared;  // what a launch may ask for
};

class CodeModule {
 public:
  // `cubin` may be null. InvalidArgument for text that is no PTX that the
  // simulator knows, or of a later architecture than `gpu`.
  static absl::StatusOr<CodeModule> Create(std::string_view ptx,
                                           const ptxsim::Cubin* cubin,
                                           const ptxsim::GpuArchitecture& gpu);

  const ptxsim::PtxModule& ptx() const { return ptx_; }
  // Null for an unknown name; lives as long as the module.
  Kernel* Find(const std::string& name);

 private:
  explicit CodeModule(ptxsim::PtxModule ptx) : ptx_(std::move(ptx)) {}

  ptxsim::PtxModule ptx_;
  std::map<std::string, Kernel> kernels_;
};

// Whether these are the first bytes of a cubin (an ELF file).
bool LooksLikeCubin(const void* image);
// The whole of it, however long: its headers say.
absl::StatusOr<std::string_view> CubinBytes(const void* image);

}  // namespace regatta::cuda_sim

#endif  // REGATTA_DEVICE_AGENT_CUDA_SIM_CODE_MODULE_H_

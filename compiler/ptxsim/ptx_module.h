// A parsed PTX module: kernels that `RunKernel` (launch.h) can execute.
//
// Immutable; copies share the programs. Thread-safe.
#ifndef REGATTA_COMPILER_PTXSIM_PTX_MODULE_H_
#define REGATTA_COMPILER_PTXSIM_PTX_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta::ptxsim {

struct ModuleData;

class PtxModule {
 public:
  // Reads PTX as NVRTC or nvcc writes it for sm_75 and later. InvalidArgument,
  // naming line and opcode or directive, for text that is no PTX and for
  // everything that the simulator does not know: nothing is skipped silently.
  static absl::StatusOr<PtxModule> Parse(std::string_view text);

  struct ParameterInfo {
    size_t offset;  // in the block of parameters
    size_t bytes;
  };
  struct EntryInfo {
    std::string name;
    std::vector<ParameterInfo> parameters;
    size_t parameter_bytes;
    uint32_t static_shared_bytes;  // includes what aligns the dynamic array
    bool dynamic_shared;           // has an extern shared array
    uint32_t local_bytes;          // of each thread
    uint32_t max_threads;  // of a block, from .maxntid or .reqntid; 0: not said
    size_t instructions;   // decoded, calls expanded
  };
  // In the order of the text.
  const std::vector<EntryInfo>& entries() const;
  // nullptr for an unknown name.
  const EntryInfo* FindEntry(std::string_view name) const;
  // 80 of ".target sm_80".
  int target_sm() const;

  const ModuleData& data() const { return *data_; }  // for the simulator

 private:
  explicit PtxModule(std::shared_ptr<const ModuleData> data)
      : data_(std::move(data)) {}

  std::shared_ptr<const ModuleData> data_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_PTX_MODULE_H_

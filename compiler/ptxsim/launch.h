// Runs kernels of a PtxModule on the host: the result, what it cost in counts,
// and what the kernel did wrong.
//
// Blocks run one after another, and the warps of a block in turns, so a launch
// is deterministic. Lanes of a warp advance together; after a divergent branch
// those at the lowest instruction go first.
#ifndef REGATTA_COMPILER_PTXSIM_LAUNCH_H_
#define REGATTA_COMPILER_PTXSIM_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/counters.h"
#include "compiler/ptxsim/device_memory.h"
#include "compiler/ptxsim/fault.h"
#include "compiler/ptxsim/ptx_module.h"

namespace regatta::ptxsim {

// The bytes of one kernel parameter: an address of device memory, a number, a
// struct passed by value.
class Argument {
 public:
  template <typename T,
            typename = std::enable_if_t<std::is_trivially_copyable_v<T> &&
                                        !std::is_pointer_v<T>>>
  Argument(const T& value)  // NOLINT: {address, 3, 1.5f} reads best
      : bytes_(sizeof(T)) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }
  static Argument FromBytes(const void* bytes, size_t count) {
    Argument argument;
    const auto* first = static_cast<const std::byte*>(bytes);
    argument.bytes_.assign(first, first + count);
    return argument;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  Argument() = default;
  std::vector<std::byte> bytes_;
};

struct Launch {
  std::string entry;
  Dim3 grid;
  Dim3 group;  // threads of a block
  uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;  // one for each parameter, of its size
};

struct RunOptions {
  // Warp instructions of the whole launch; beyond, the launch ends with the
  // fault kTimeout.
  uint64_t instruction_limit = uint64_t{2} << 30;
  // Looking for races costs time, and in global memory 10 bytes for each byte
  // touched. What is off is not reported; all else is.
  bool find_shared_races = true;
  bool find_global_races = true;
  // 0: every block runs. Else only this many, spread evenly from the first to
  // the last, and the counters are scaled up to the grid: exact where all
  // blocks do the same, and then only the blocks that ran have written their
  // results.
  uint64_t sampled_blocks = 0;
};

struct LaunchReport {
  // The first thing that went wrong, after which the launch stopped: memory is
  // then unspecified and the counters are those up to it.
  std::optional<Fault> fault;
  Counters counters;
  uint64_t blocks = 0;  // of the grid
  uint64_t blocks_run = 0;
  // Addresses of the buffers that the blocks that ran touched and, among them,
  // wrote. What a launch does depends on the bytes of the first alone.
  std::vector<uint64_t> touched_buffers;
  std::vector<uint64_t> written_buffers;
};

// Runs one launch to its end. Variables of the module begin anew with each
// launch; those of shared memory hold 0xFF bytes at first.
//
// NotFound for an unknown entry; InvalidArgument for a grid, block, shared
// memory or arguments that no GPU would take for it; ResourceExhausted when the
// host has no memory for it.
absl::StatusOr<LaunchReport> RunKernel(const PtxModule& module,
                                       const Launch& launch,
                                       DeviceMemory& memory,
                                       const RunOptions& options = {});

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_LAUNCH_H_

// A Module is what the compiler delivers and a board runs: loadable bytes, the
// kernels in them, the host sequence that calls them, and the buffers they work
// on, each with a role. It knows nothing of LLVM, so a run worker can load one.
//
// A CPU module's `loadable` is an ELF shared object that needs libc and libm
// only; `relocatable` is the same code as an object file for static linking.
// Both export (see c_interface.h for the text of the header):
//   int NAME(inputs..., outputs...)
//   int NAME_ws(inputs..., outputs..., void* workspace)
//   int NAME_call(void* const* tensors, void* workspace)
//   const size_t NAME_workspace_bytes
// where NAME is Module::name. NAME_call is NAME_ws for callers that do not know
// the shape of the signature (run workers): the pointers of the inputs, then of
// the outputs, in one array. A workspace must be aligned to 64 bytes and may be
// null when NAME_workspace_bytes is 0.
//
// A module of a device with memory of its own has no host code: whoever runs it
// allocates every buffer (all are MemorySpace::kDevice), one allocation each,
// and launches `host_sequence` in order, each kernel after the one before it.
// What `loadable` holds is the kind of target's matter: OpenCL C source, or a
// CUDA binary and its PTX (cuda_binary.h).
//
// Value type; not synchronised.
#ifndef REGATTA_COMPILER_MODULE_MODULE_H_
#define REGATTA_COMPILER_MODULE_MODULE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/dtype.h"

namespace regatta {

// Bumped when the exported functions change shape.
inline constexpr int kModuleAbiVersion = 1;

// The name of modules that boards build for trials: part of the bytes that a
// record's binary hash is of.
inline constexpr char kTrialModuleName[] = "regatta_kernel";

enum class BufferRole {
  kInput,      // given by the caller, read only
  kOutput,     // given by the caller, written whole
  kConstant,   // given once; `packing_kernel` turns it into what kernels read
  kWorkspace,  // scratch; the caller of NAME_ws provides it
};

// Where a buffer must live. A CPU has one space.
enum class MemorySpace { kHost, kDevice };

struct ModuleBuffer {
  std::string name;
  BufferRole role = BufferRole::kInput;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // elements, row-major; workspace: {elements}
  int64_t bytes = 0;
  int64_t alignment = 64;  // bytes
  MemorySpace space = MemorySpace::kHost;
  // Bytes into the workspace block, of a workspace in host memory; one in
  // device memory is an allocation of its own.
  int64_t workspace_offset = 0;
  std::string packing_kernel;  // kConstant only; "" when used as given
  // Pixels of four elements, where kernels take a two-dimensional image; 0:
  // plain memory. Workspace of devices only.
  int64_t image_width = 0, image_height = 0;
};

// One kernel. Extents are constants today.
struct ModuleKernel {
  std::string entry;           // exported or internal symbol
  std::vector<int> arguments;  // indices into Module::buffers
  // Launch geometry. Devices: the number of groups and the work-items of one
  // group, per dimension, 1 to 3 of them and as many in both; dimension 0 is
  // the one whose neighbours run together. CPU: {parallel extent} or {1}, {}.
  std::vector<int64_t> grid;
  std::vector<int64_t> group;
  // Memory that each group shares, in bytes, given at launch. 0 where kernels
  // declare it (OpenCL).
  int64_t shared_bytes = 0;
};

struct Module {
  std::string name;      // C identifier; names the exported functions
  std::string workload;  // workload text
  std::string workload_key;
  std::string target;  // target text
  std::string space;   // space name, version and schedule text
  int space_version = 0;
  std::string schedule;
  std::string compiler_version;
  int threads = 1;
  std::vector<ModuleBuffer> buffers;  // inputs, then outputs, then the rest
  std::vector<ModuleKernel> kernels;
  std::vector<int> host_sequence;  // indices into `kernels`, in call order
  int64_t workspace_bytes = 0;     // of the block in host memory
  std::string loadable;
  std::string relocatable;

  // Identity of the generated code: SHA-256 of `loadable`, followed on devices
  // by how it is launched, which host code does elsewhere.
  std::string BinaryHash() const;
  std::vector<const ModuleBuffer*> BuffersWithRole(BufferRole role) const;
};

// Bytes that DeserializeModule turns back into an equal Module: a length-framed
// JSON description followed by the two binaries. Versioned.
std::string SerializeModule(const Module& module);
// InvalidArgument (with the offset or field) for anything else.
absl::StatusOr<Module> DeserializeModule(std::string_view bytes);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_MODULE_H_

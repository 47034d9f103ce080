// What a CUDA module's `loadable` holds: code for one architecture and the PTX
// that it came from. A board loads the first and, where its GPU is newer, the
// second. No CUDA header is needed.
#ifndef REGATTA_COMPILER_MODULE_CUDA_BINARY_H_
#define REGATTA_COMPILER_MODULE_CUDA_BINARY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace regatta {

struct CudaBinary {
  std::string arch;   // "sm_80"
  std::string cubin;  // ELF, for `arch` and later ones of its generation
  std::string ptx;    // text, without a closing zero
  friend bool operator==(const CudaBinary&, const CudaBinary&) = default;
};

// Bytes that ParseCudaBinary turns back into an equal value. Versioned.
std::string SerializeCudaBinary(const CudaBinary& binary);
// InvalidArgument (with the offset) for anything else.
absl::StatusOr<CudaBinary> ParseCudaBinary(std::string_view bytes);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_CUDA_BINARY_H_

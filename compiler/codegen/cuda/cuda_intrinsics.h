// Intrinsics of the loops (compiler/lower/intrinsics.h) as calls of functions
// around one PTX instruction each.
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_CUDA_INTRINSICS_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_CUDA_INTRINSICS_H_

#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/c_like/dialect.h"

namespace regatta::cuda {

// The statement; "" where `architecture` (80 for sm_80) has no such
// instruction. `operands` as in c_like::Dialect::Intrinsic.
std::string IntrinsicText(int architecture, std::string_view name,
                          const std::vector<std::string>& operands);

// The functions that those statements call.
std::vector<c_like::Helper> IntrinsicHelpers();

}  // namespace regatta::cuda

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_CUDA_INTRINSICS_H_

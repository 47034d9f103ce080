// What operators share about element types: the parameters `dtype` and
// `out_dtype`, and operands widened to what sums are kept in.
#ifndef REGATTA_COMPILER_OPS_OP_TYPES_H_
#define REGATTA_COMPILER_OPS_OP_TYPES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ops/op.h"

namespace regatta {

// `dtype` of the operands; integers only where `integers`.
OpParameter DTypeParameter(bool integers);
// `out_dtype`: "auto" is dtype, i32 for i8.
OpParameter OutDTypeParameter();

// The name of the output's type. InvalidArgument when sums of `dtype` cannot be
// stored as the `out_dtype` that was asked for.
absl::StatusOr<std::string> OutDType(const OpArguments& arguments);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_OP_TYPES_H_

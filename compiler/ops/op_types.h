// What operators share about parameters: words, element types.
#ifndef REGATTA_COMPILER_OPS_OP_TYPES_H_
#define REGATTA_COMPILER_OPS_OP_TYPES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ops/op.h"

namespace regatta {

OpParameter WordParameter(std::string name, std::string help,
                          std::string default_value,
                          std::vector<std::string> words);
// A list of integers from `min` on, joined by x.
OpParameter ListParameter(std::string name, std::string help, int64_t min = 1);

// Adds parameters that several operators share behind those of `op`.
void AppendParameters(Op& op, std::vector<OpParameter> more);

// `dtype` of the operands; integers only where `integers`.
OpParameter DTypeParameter(bool integers);
// `out_dtype`: "auto" is dtype, i32 for i8.
OpParameter OutDTypeParameter();

// The name of the output's type. InvalidArgument when sums of `dtype` cannot be
// stored as the `out_dtype` that was asked for.
absl::StatusOr<std::string> OutDType(const OpArguments& arguments);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_OP_TYPES_H_
